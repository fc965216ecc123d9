import { t } from 'elysia'

/** The first message of a stream of changes, after which it has every change. */
export const ReadySignal = t.Object({ type: t.Literal('ready') }, { $id: 'ReadySignal' })

/** The message in place of changes that a reader was too slow for. */
export const GapSignal = t.Object({ type: t.Literal('gap') }, { $id: 'GapSignal' })
