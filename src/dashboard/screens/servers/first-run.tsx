import { useState } from 'preact/hooks'
import { Button } from '../../components/button.tsx'
import { CopyButton } from '../../components/copy.tsx'
import { Empty } from '../../components/empty.tsx'
import { useDashboard } from '../../dashboard.ts'
import { createServer } from './create-server.tsx'

/** What an instance without a server shows: how to make one, here or by a program. */
export function FirstRun() {
  const dashboard = useDashboard()
  const { base_url: baseUrl } = dashboard.context
  const [key, setKey] = useState<string | null>(null)
  const lines = (shown: string): string[] => [
    `export BERTH_BASE_URL=${baseUrl} BERTH_API_KEY=${shown}`,
    'berth servers create first',
    'berth shell',
  ]
  return (
    <Empty title="No servers yet">
      <p>A server is a machine of its own: files, processes, ports and a URL.</p>
      <p>
        <Button isNew look="primary" icon="plus" onClick={() => createServer(dashboard, { task: 'first' })}>
          Create a server and open its terminal
        </Button>
      </p>
      <p class="quiet">Or from a terminal:</p>
      <ol class="lines">
        {lines(key ?? 'sk_live_…').map((line) => (
          <li class="line" key={line}>
            <code>{line}</code>
            <CopyButton text={line} label="Copy the line" />
          </li>
        ))}
      </ol>
      {key === null && (
        <p>
          <Button onClick={async () => setKey(await newKey(dashboard))}>Create a key for these lines</Button>
        </p>
      )}
    </Empty>
  )
}

/** Creates a key of the whole account. */
async function newKey({ api }: ReturnType<typeof useDashboard>): Promise<string> {
  const { key } = await api.call('keys.create', { body: { label: 'first steps' } })
  return key
}
