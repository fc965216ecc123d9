import { useEffect, useState } from 'preact/hooks'
import { messageOf } from '../../../runtime/error-info.ts'
import { CopyButton } from '../../components/copy.tsx'
import { Search } from '../../components/filters.tsx'
import { Empty, Failure, Loading, ScreenPage } from '../../components/page.tsx'
import { useDashboard } from '../../dashboard.ts'
import { hrefWith } from '../requests/filters.tsx'
import { ToolForm } from './tool-view.tsx'
import { listTools, MCP_PATH, type Tool } from './tools.ts'

/** The tools that hosts of the Model Context Protocol have: their arguments and results, and a form to try each. */
export default function McpTools() {
  const { api, context, router, shortcuts } = useDashboard()
  const [tools, setTools] = useState<readonly Tool[] | Error | null>(null)
  const load = (): Promise<void> =>
    listTools(api).then(setTools, (error: unknown) => setTools(new Error(messageOf(error))))
  useEffect(() => {
    void load()
    return shortcuts.add({
      keys: 'Escape',
      label: 'Close the tool',
      isUsable: () => router.query.peek().has('tool'),
      run: () => router.setQuery('tool', ''),
    })
  }, [router, shortcuts])
  const address = `${context.base_url}${MCP_PATH}`
  return (
    <ScreenPage title="MCP tools" isFull actions={<Search label="Search tools" />}>
      <p class="above-table mcp-address">
        <code>{address}</code>
        <CopyButton text={address} label="Copy the address" />
        <span class="quiet">
          What a coding assistant can do here. <a href="/docs/guide/mcp">How to connect one</a>
        </span>
      </p>
      {tools instanceof Error ? (
        <Failure error={tools} retry={load} />
      ) : tools === null ? (
        <Loading />
      ) : (
        <ToolList tools={tools} />
      )}
    </ScreenPage>
  )
}

/** The tools that the search of the address lets pass, with the one that it names beside them. */
function ToolList({ tools }: { tools: readonly Tool[] }) {
  const { router } = useDashboard()
  const query = router.query.value
  const selected = query.get('tool') ?? ''
  const sought = (query.get('q') ?? '').toLowerCase()
  const shown = tools.filter((tool) =>
    `${tool.name} ${tool.title} ${tool.description}`.toLowerCase().includes(sought),
  )
  const tool = tools.find(({ name }) => name === selected)
  /** What was typed, kept from tool to tool: most take the id of a server. */
  const [ids, setIds] = useState<Readonly<Record<string, string>>>({})
  return (
    <div class={`split${selected === '' ? '' : ' has-detail'}`}>
      {shown.length === 0 ? (
        <Empty title="No tool fits the search">
          <p>
            <a href={hrefWith(router.path.value, query, { q: '' })}>Show all</a>
          </p>
        </Empty>
      ) : (
        <div class="table tools">
          <ul>
            {shown.map(({ name, title, annotations }) => (
              <li key={name} class={`row${name === selected ? ' current' : ''}`}>
                <span class="cell">
                  <a
                    class="row-link"
                    data-shows
                    href={hrefWith(router.path.value, query, { tool: name })}
                    aria-current={name === selected ? 'true' : undefined}
                  >
                    <code>{name}</code>
                  </a>
                </span>
                <span class="cell tool-title quiet">{title}</span>
                <span class="cell tool-hint quiet">{annotations?.readOnlyHint && 'reads only'}</span>
              </li>
            ))}
          </ul>
        </div>
      )}
      {selected !== '' && (
        <ToolForm
          key={selected}
          name={selected}
          tool={tool}
          ids={ids}
          onId={(name, id) => setIds((before) => ({ ...before, [name]: id }))}
          onClose={() => router.setQuery('tool', '')}
        />
      )}
    </div>
  )
}
