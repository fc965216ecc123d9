/** Shows a unified difference: added and removed lines in their colours. */
export const Diff = ({ text }: { text: string }) => (
  <pre class="diff">
    {text
      .split('\n')
      // The two names of the file, which stand above it.
      .filter((line) => !/^(?:---|\+\+\+|={3})/.test(line))
      .map((line, index) => (
        <span key={index} class={lookOf(line)}>
          {`${line}\n`}
        </span>
      ))}
  </pre>
)

const lookOf = (line: string): string =>
  line.startsWith('+') ? 'added' : line.startsWith('-') ? 'removed' : line.startsWith('@@') ? 'place' : ''
