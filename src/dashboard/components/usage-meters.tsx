import { useEffect } from 'preact/hooks'
import type { ServerUsage } from '../../resources/usage/model.ts'
import { useDashboard } from '../dashboard.ts'
import type { Server } from '../store/store.ts'
import { State } from './state.tsx'
import { bytesText } from './text.ts'

/** Follows the usage of a server, or of all, while the component is shown. */
export function useUsage(serverId?: string): ReadonlyMap<string, ServerUsage> {
  const { usage } = useDashboard()
  useEffect(() => usage.follow(serverId), [usage, serverId])
  return usage.all.value
}

/** Returns an amount of credits with two decimals: `1.25`. */
export const formatCredits = (credits: number): string =>
  credits > 0 && credits < 0.01 ? '< 0.01' : credits.toFixed(2)

/** The state of a server: unreachable while it cannot be measured, with the cause on hover. */
export function ServerState({ status, usage }: { status: Server['status']; usage: ServerUsage | undefined }) {
  const cause = status === 'sleeping' ? null : (usage?.unreachable ?? null)
  if (cause === null) return <State of={status} />
  return (
    <span title={cause}>
      <State of="unreachable" look="bad" />
    </span>
  )
}

/** Properties of the bars. */
interface UsageMetersProps {
  server: Server
  usage: ServerUsage | undefined
  /** Whether to show the limits too, for which a list has no room. */
  hasLimits?: boolean
}

/** What a server uses of its processors, its memory and its storage, each as a small bar. */
export function UsageMeters({ server, usage, hasLimits }: UsageMetersProps) {
  // Of one that cannot be reached, what it uses is not known.
  const isMeasured = usage !== undefined && usage.unreachable === null && server.status !== 'sleeping'
  const {
    cpu_percent: cpu = 0,
    cpus = 0,
    memory_bytes: memory = 0,
    memory_limit_bytes: memoryLimit = 0,
    storage_limit_bytes: storageLimit = 0,
  } = usage ?? {}
  const storage = server.storageUsedGb * 1e9
  return (
    <>
      <Meter
        isSmall
        hasLimit={hasLimits}
        label="CPU"
        used={isMeasured ? cpu : 0}
        most={100}
        text={isMeasured ? `${cpu.toFixed(0)} %` : '–'}
        limit={usage && `${cpus} ${cpus === 1 ? 'CPU' : 'CPUs'}`}
      />
      <Meter
        isSmall
        hasLimit={hasLimits}
        label="Memory"
        used={isMeasured ? memory : 0}
        most={memoryLimit}
        text={isMeasured ? bytesText(memory) : '–'}
        limit={usage && bytesText(memoryLimit)}
      />
      <Meter
        isSmall
        hasLimit={hasLimits}
        label="Storage"
        used={storage}
        most={storageLimit}
        text={bytesText(storage)}
        limit={usage && bytesText(storageLimit)}
      />
    </>
  )
}

/** Properties of a bar. */
interface MeterProps {
  label: string
  used: number
  most: number
  text: string
  /** Narrow: the label is for screen readers and on hover only, the bar is below the figure. */
  isSmall?: boolean
  /** What a narrow one says of its limit: on hover, and beside the figure if `hasLimit`. */
  limit?: string | undefined
  hasLimit?: boolean | undefined
}

/** How much of a limit is used, as a bar with its figure. */
export function Meter({ label, used, most, text, isSmall = false, limit, hasLimit }: MeterProps) {
  const share = most > 0 ? Math.min(1, used / most) : 0
  const whole = `${label}: ${text}${limit === undefined ? '' : ` of ${limit}`}`
  return (
    <div class={`meter${isSmall ? ' small' : ''}${share > 0.9 ? ' full' : ''}`} title={whole}>
      <span class="quiet">{label}</span>
      <meter min={0} max={1} value={share} aria-label={whole} />
      <span>
        {text}
        {hasLimit && limit !== undefined && <span class="quiet"> of {limit}</span>}
      </span>
    </div>
  )
}
