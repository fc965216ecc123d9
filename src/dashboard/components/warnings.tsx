/** Says what is wrong with the pages of an app that is up; nothing if nothing is. */
export function Warnings({ warnings }: { warnings: readonly string[] }) {
  if (warnings.length === 0) return null
  return (
    <div class="notice warning" role="status">
      {warnings.map((text) => (
        <p key={text}>Warning: {text}</p>
      ))}
    </div>
  )
}
