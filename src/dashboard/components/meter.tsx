/** How much of a limit is used, as a bar with its figure. */
export function Meter({
  label,
  used,
  most,
  text,
}: {
  label: string
  used: number
  most: number
  text: string
}) {
  const share = most > 0 ? Math.min(1, used / most) : 0
  return (
    <div class={`meter${share > 0.9 ? ' full' : ''}`} title={`${label}: ${text}`}>
      <span class="quiet">{label}</span>
      <meter min={0} max={1} value={share} aria-label={`${label}: ${text}`} />
      <span>{text}</span>
    </div>
  )
}
