import type { Build } from '../../store/store.ts'

/** Reports whether a build has ended without an agent that could work on its goal. */
export const isIdle = ({ status, steps }: Pick<Build, 'status' | 'steps'>): boolean =>
  status === 'completed' && steps.some(({ skipped }) => skipped === true)
