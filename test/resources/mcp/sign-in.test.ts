import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import * as v2 from '@modelcontextprotocol/client'
import * as v1 from '@modelcontextprotocol/sdk/client/index.js'
import * as v1http from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import type { Browser } from 'playwright-core'
import { temporaryFolder } from '../../cli/command.ts'
import { onTerminal } from '../../cli/terminal.ts'
import { berthForTests } from '../../support/berth.ts'
import { browserPath, launchBrowser } from '../../support/browser.ts'
import { McpHost } from '../../support/mcp-host.ts'
import { consent, signedInBrowser } from '../../support/oauth.ts'
import { installedPackages } from '../../support/packages.ts'
import { freePort } from '../../support/ports.ts'
import { watchedPage } from '../../support/watched-page.ts'

const berth = await berthForTests()
const url = new URL(berth.info.mcp_url)

const ABOUT = { name: 'a host', version: '1.0.0' }

/** Lets in the program that has opened a browser. @returns what the browser brings back */
async function letIn(host: McpHost): Promise<URLSearchParams> {
  const { pathname, search } = new URL(host.opened ?? '')
  return (await consent(await signedInBrowser(berth), `${pathname}${search}`)).searchParams
}

/** What both versions of the client can be asked. */
interface Connected {
  listTools(): Promise<{ tools: { name: string }[] }>
  callTool(call: {
    name: string
    arguments: Record<string, unknown>
  }): Promise<{ structuredContent?: unknown }>
  close(): Promise<void>
}

/** A host provisions a server and runs a command there. */
async function work(client: Connected): Promise<void> {
  const { tools } = await client.listTools()
  expect(tools.map(({ name }) => name)).toContain('exec_run')
  const created = await client.callTool({ name: 'servers_create', arguments: { task: 'by a host' } })
  const { id } = created.structuredContent as { id: string }
  const ran = await client.callTool({
    name: 'exec_run',
    arguments: { serverId: id, command: 'echo from $((6 * 7))' },
  })
  expect(ran.structuredContent).toMatchObject({ stdout: 'from 42\n', exitCode: 0 })
  await client.close()
}

describe('an official MCP client connects from nothing but the URL', () => {
  test.each(['legacy', 'auto'] as const)('version 2, protocol era %s', async (mode) => {
    const host = new McpHost()
    const connect = async () => {
      const client = new v2.Client(ABOUT, { versionNegotiation: { mode } })
      const transport = new v2.StreamableHTTPClientTransport(url, { authProvider: host })
      await client.connect(transport)
      return client
    }
    const transport = new v2.StreamableHTTPClientTransport(url, { authProvider: host })
    await expect(new v2.Client(ABOUT).connect(transport)).rejects.toThrow(v2.UnauthorizedError)
    await transport.finishAuth(await letIn(host))
    await work((await connect()) as unknown as Connected)
  })

  test('version 1', async () => {
    const host = new McpHost()
    const authProvider = host as unknown as NonNullable<
      v1http.StreamableHTTPClientTransportOptions['authProvider']
    >
    const transport = new v1http.StreamableHTTPClientTransport(url, { authProvider })
    await expect(new v1.Client(ABOUT).connect(transport as never)).rejects.toThrow('Unauthorized')
    await transport.finishAuth((await letIn(host)).get('code') ?? '')
    const client = new v1.Client(ABOUT)
    await client.connect(new v1http.StreamableHTTPClientTransport(url, { authProvider }) as never)
    await work(client as unknown as Connected)
  })
})

/** How long the inspector may take to begin, and to connect, on a busy machine. */
const PATIENCE_MS = 60_000

const npm = Bun.which('npm')
const registry = npm && Bun.spawnSync([npm, 'config', 'get', 'registry']).stdout.toString().trim()
const reachable = await fetch(`${registry?.replace(/\/$/, '')}/@modelcontextprotocol%2finspector`, {
  method: 'HEAD',
  signal: AbortSignal.timeout(10_000),
}).then(
  ({ ok }) => ok,
  () => false,
)
// In CI what cannot be installed is a failure, and no reason to pass it over.
const canInstall = npm !== null && (reachable || Boolean(process.env.CI))
if (!canInstall) console.error('SKIP: the MCP inspector, since npm or its registry does not answer')
if (browserPath === null) console.error('SKIP: no Chromium is installed (apt-get install chromium)')

describe.skipIf(!canInstall || browserPath === null)('the command line of the MCP inspector', () => {
  let browser: Browser
  beforeAll(async () => {
    browser = await launchBrowser()
  })
  afterAll(() => browser?.close())

  test('connects from nothing but the URL: a person signs in and consents in a browser', async () => {
    using folder = temporaryFolder()
    const packages = await installedPackages(join(import.meta.dir, '../../../fixtures/mcp-inspector'))
    const inspector = join(packages, '@modelcontextprotocol/inspector/clients/launcher/build/index.js')
    const callback = `http://127.0.0.1:${freePort()}/oauth/callback`
    // It asks for a newer Node.js than many machines have; Bun stands in for it.
    const command = [process.execPath, '--bun', inspector, '--cli', '--server-url', url.href]
    const options = ['--transport', 'http', '--callback-url', callback, '--method', 'tools/list']
    await using terminal = onTerminal([...command, ...options], {
      cwd: folder.path,
      env: { HOME: folder.path, MCP_AUTO_OPEN_ENABLED: 'false' },
    })
    const link = new RegExp(`${berth.info.base_url}/oauth/authorize\\?[^\\s\\x1b\\x07]+`)
    await terminal.shows(link, PATIENCE_MS)
    await using watched = await watchedPage(browser)
    const { page } = watched
    await page.goto(link.exec(terminal.output())?.[0] ?? '')
    await page.getByLabel(/API key/).fill(berth.info.api_key)
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.getByLabel('The whole account').check()
    await page.getByRole('button', { name: 'Allow' }).click()
    await terminal.shows('"exec_run"', PATIENCE_MS)
    expect(await terminal.exited).toBe(0)
  }, 240_000)
})
