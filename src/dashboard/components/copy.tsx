import { useState } from 'preact/hooks'
import { useDashboard } from '../dashboard.ts'
import { Button } from './button.tsx'

/** Milliseconds for which a button says that it has copied. */
const SAID_MS = 1_500

/** A button that copies a text. */
export function CopyButton({
  text,
  label,
}: {
  text: string | (() => string | Promise<string>)
  label: string
}) {
  const [isCopied, setCopied] = useState(false)
  const copy = async (): Promise<void> => {
    await navigator.clipboard.writeText(typeof text === 'string' ? text : await text())
    setCopied(true)
    setTimeout(() => setCopied(false), SAID_MS)
  }
  return (
    <Button
      look="quiet"
      icon={isCopied ? 'check' : 'copy'}
      label={isCopied ? 'Copied' : label}
      onClick={copy}
    />
  )
}

/**
 * An id, shortened where it is long, with a button to copy the whole.
 *
 * @param isShown whether the id is shown beside it, so that only the button is needed
 */
export const Id = ({ id, isShown = false }: { id: string; isShown?: boolean }) => (
  <span class="id">
    {!isShown && <code title={id}>{shortId(id)}</code>}
    <CopyButton text={id} label={`Copy the id ${id}`} />
  </span>
)

/** The address of a running app, which opens in a tab of its own, with a button to copy it. */
export const Address = ({ url }: { url: string }) => (
  <span class="id">
    <a href={url} target="_blank" rel="noopener noreferrer">
      {url}
    </a>
    <CopyButton text={url} label="Copy the address" />
  </span>
)

/** Returns the label of a server; its short id if it has none. */
export const serverLabel = (id: string, label: string | null | undefined): string => label || shortId(id)

/** A link to a server, by its label. */
export function ServerLink({ id }: { id: string }) {
  const { context, store } = useDashboard()
  const label = <bdi>{serverLabel(id, store.servers.open().get(id)?.task)}</bdi>
  // A report has no screen of it.
  return context.is_report ? label : <a href={`/dashboard/servers/${id}`}>{label}</a>
}

/** Characters of an id after its prefix that are shown, as the command line shows them. */
const SHOWN = 8

/** Returns an id as lists show it: its prefix and the first characters after it. */
export function shortId(id: string): string {
  const start = id.lastIndexOf('_') + 1
  return id.length - start > SHOWN + 2 ? `${id.slice(0, start + SHOWN)}…` : id
}
