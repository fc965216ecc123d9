import { quoted } from '../../components/command-lines.tsx'
import { CopyButton } from '../../components/copy.tsx'
import { Dialog } from '../../components/dialog.tsx'

/** Shows the commands that start a second instance from a snapshot, beside this one. */
export function Fork({ name, onClose }: { name: string; onClose: () => void }) {
  const dir = quoted(`${name}-fork`)
  const commands = [
    `cp -r ${quoted(`.berth/snapshots/${name}`)} ${dir}`,
    `cp .berth/master.key .berth/credentials.json ${dir}`,
    `berth serve --data ${dir} --port 0`,
  ]
  return (
    <Dialog title={`A second instance from ${name}`} onClose={onClose}>
      <p>
        A copy of the snapshot with the keys of this instance is a data directory. What starts from it goes
        its own way; nothing here changes.
      </p>
      {commands.map((command) => (
        <div class="line" key={command}>
          <code>{command}</code>
          <CopyButton text={command} label="Copy the line" />
        </div>
      ))}
      <p class="quiet below">
        <code>berth list</code> names the directory of this instance if it is not <code>.berth</code>. While
        both run, public projects of the second answer at <code>SLUG.localhost</code> only: the ports of their
        own are taken.
      </p>
    </Dialog>
  )
}
