import { Button } from './button.tsx'
import { CopyButton } from './copy.tsx'
import { Dialog } from './dialog.tsx'

/** Properties of a credential that is shown once. */
interface ShownOnceProps {
  title: string
  /** What it is for, and what to take care of. */
  about: string
  /** The credential itself. */
  text: string
  onClose: () => void
}

/** Shows a credential that was just made, which no later response has. */
export const ShownOnce = ({ title, about, text, onClose }: ShownOnceProps) => (
  <Dialog title={title} onClose={onClose}>
    <p>{about}</p>
    <div class="line">
      <code>{text}</code>
      <CopyButton text={text} label="Copy it" />
    </div>
    <p class="actions">
      <Button look="primary" onClick={onClose}>
        Done
      </Button>
    </p>
  </Dialog>
)
