import { quoted } from '../../components/command-lines.tsx'
import { CopyButton } from '../../components/copy.tsx'
import { Dialog } from '../../components/dialog.tsx'
import { useDashboard } from '../../dashboard.ts'

/** Shows the command that starts a second instance from a snapshot, beside this one. */
export function Fork({ name, onClose }: { name: string; onClose: () => void }) {
  const { context } = useDashboard()
  const command = `berth serve --snapshot ${quoted(`${context.data_dir}/snapshots/${name}`)} --ephemeral --port 0`
  return (
    <Dialog title={`A second instance from ${name}`} onClose={onClose}>
      <p>
        Run this on the machine of this instance. It starts beside it, from a copy of the snapshot with the
        same keys, and prints a link that signs you in. Nothing here changes.
      </p>
      <div class="line">
        <code>{command}</code>
        <CopyButton text={command} label="Copy the line" />
      </div>
      <p class="quiet below">
        It ends with Ctrl-C, and its copy with it. To keep the copy, write <code>--data DIR</code> in place of{' '}
        <code>--ephemeral</code>. While both run, public projects of the second answer at{' '}
        <code>SLUG.localhost</code> only: the ports of their own are taken.
      </p>
    </Dialog>
  )
}
