/** Properties of a bar. */
interface MeterProps {
  label: string
  used: number
  most: number
  text: string
  /** Narrow: the label is for screen readers and on hover only, the bar stands below the figure. */
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
