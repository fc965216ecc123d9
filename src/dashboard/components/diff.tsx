/** Shows the unified difference of one file: added and removed lines in their colours. */
export const Diff = ({ text }: { text: string }) => (
  <pre class="diff">
    {linesOf(text).map((line, index) => (
      <span key={index} class={lookOf(line)}>
        {`${line}\n`}
      </span>
    ))}
  </pre>
)

/** Returns the lines that are shown. */
function linesOf(text: string): string[] {
  const all = text.replace(/\n+$/, '').split('\n')
  // Both versions end without a line break: nothing differs there.
  const isSameEnd = all.filter(isAboutEnd).length > 1
  return all
    .filter((line) => !(isSameEnd && isAboutEnd(line)))
    .filter((line) => !/^(?:---|\+\+\+|={3})/.test(line)) // The two names of the file, which stand above it.
}

/** Reports whether a line says that a version ends without a line break. */
const isAboutEnd = (line: string): boolean => line.startsWith('\\')

const lookOf = (line: string): string =>
  line.startsWith('+') ? 'added' : line.startsWith('-') ? 'removed' : line.startsWith('@@') ? 'place' : ''
