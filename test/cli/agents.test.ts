import { describe, expect, test } from 'bun:test'
import { chmodSync, existsSync, mkdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { MCP_HOSTS } from '../../src/cli/agents/hosts.ts'
import { command as berthCommand } from '../support/serve.ts'
import { type Outcome, run, serveForTests, temporaryFolder } from './command.ts'
import { onTerminal } from './terminal.ts'

const berth = await serveForTests()

/** A person's home and project. Nothing of this machine's is read or written. */
function person() {
  const folder = temporaryFolder()
  const home = join(folder.path, 'home')
  const cwd = join(folder.path, 'project')
  for (const path of [home, cwd]) mkdirSync(path)
  const env = { HOME: home, PATH: '/usr/bin:/bin', XDG_CONFIG_HOME: join(home, '.config') }
  return {
    home,
    cwd,
    env,
    put(path: string, text: string) {
      mkdirSync(dirname(join(home, path)), { recursive: true })
      writeFileSync(join(home, path), text)
    },
    read: (path: string) => readFileSync(join(home, path), 'utf8'),
    agents: (...args: string[]): Promise<Outcome> =>
      run(['agents', ...args, ...(args[0] === 'setup' ? ['--base-url', berth.info.base_url] : [])], {
        cwd,
        env,
      }),
    [Symbol.dispose]: () => folder[Symbol.dispose](),
  }
}

const url = () => `${berth.info.base_url}/mcp`

describe('berth agents setup', () => {
  test('shows what would change and writes nothing, where nobody is there to agree', async () => {
    using one = person()
    one.put('.cursor/mcp.json', '{\n  "mcpServers": {}\n}\n')
    const { exitCode, stdout } = await one.agents('setup')
    expect(exitCode).toBe(0)
    expect(stdout).toContain(`+      "url": "${url()}"`)
    expect(stdout).toEndWith('Cursor: nothing was written. --yes writes it.\n')
    expect(one.read('.cursor/mcp.json')).toBe('{\n  "mcpServers": {}\n}\n')
  })

  test.each(MCP_HOSTS.map((host) => [host.id, host] as const))(
    'tells %s, and takes it back without a trace',
    async (id, host) => {
      using one = person()
      expect(await one.agents('setup', id, '--yes')).toMatchObject({ exitCode: 0, stderr: '' })
      const list = async () => JSON.parse((await one.agents('list', '--json')).stdout).hosts
      const [listed] = (await list()).filter((entry: { id: string }) => entry.id === id)
      expect(listed).toMatchObject({ is_found: true, url: url() })
      const again = await one.agents('setup', id, '--yes')
      expect(again.stdout).toBe(`${host.label}: ${listed.file} is as it should be.\n`)
      const deleted = await one.agents('delete', id, '--yes')
      // Nothing else was in it.
      expect(deleted.stdout).toEndWith(`${host.label}: removed ${listed.file}.\n`)
      expect(existsSync(listed.file)).toBe(false)
      expect((await list()).find((entry: { id: string }) => entry.id === id).url).toBe(null)
    },
  )

  test('changes nothing else in a file: comments, order, indentation, other servers, fields of its own, mode and a link', async () => {
    using one = person()
    const before = `{
	// mine
	"theme": "dark",
	"mcpServers": {
		"other": { "command": "x" },
		"berth": { "httpUrl": "http://127.0.0.1:1/mcp", "trust": true },
	},
}
`
    one.put('dotfiles/settings.json', before)
    mkdirSync(join(one.home, '.gemini'))
    symlinkSync('../dotfiles/settings.json', join(one.home, '.gemini/settings.json'))
    chmodSync(join(one.home, 'dotfiles/settings.json'), 0o640)
    await one.agents('setup', 'gemini', '--yes')
    expect(one.read('dotfiles/settings.json')).toBe(before.replace('http://127.0.0.1:1/mcp', url()))
    expect(statSync(join(one.home, 'dotfiles/settings.json')).mode & 0o777).toBe(0o640)
  })

  test('keeps the rest of a TOML file, and replaces an address that is there', async () => {
    using one = person()
    const before = `model = "x" # mine

[mcp_servers.other]
command = "y"

[mcp_servers.berth] # local
url = "http://127.0.0.1:1/mcp"
tool_timeout_sec = 60

[profiles.a]
model = "$&"
`
    one.put('.codex/config.toml', before)
    await one.agents('setup', 'codex', '--key', '--yes')
    const after = one.read('.codex/config.toml')
    expect(after).toContain(
      `[mcp_servers.berth] # local\nbearer_token_env_var = "BERTH_API_KEY"\nurl = "${url()}"\ntool_timeout_sec = 60\n`,
    )
    expect(
      after.replace('bearer_token_env_var = "BERTH_API_KEY"\n', '').replace(url(), 'http://127.0.0.1:1/mcp'),
    ).toBe(before)
    await one.agents('delete', 'codex', '--yes')
    expect(Bun.TOML.parse(one.read('.codex/config.toml'))).toEqual({
      model: 'x',
      mcp_servers: { other: { command: 'y' } },
      profiles: { a: { model: '$&' } },
    })
  })

  test('removes its table of a TOML file and nothing else: comments and blank lines around it stay', async () => {
    using one = person()
    const before = `# mine
model = "x"

# berth runs here
[mcp_servers.berth]
url = "http://127.0.0.1:1/mcp"

# The other one is for work.
# Ask before you change it.
[mcp_servers.other]
command = "y"
`
    one.put('.codex/config.toml', before)
    expect(await one.agents('delete', 'codex', '--yes')).toMatchObject({ exitCode: 0 })
    expect(one.read('.codex/config.toml')).toBe(
      before.replace('\n[mcp_servers.berth]\nurl = "http://127.0.0.1:1/mcp"', ''),
    )
  })

  test('adds fields to a table of a TOML file in the order in which it writes a new one', async () => {
    using one = person()
    await one.agents('setup', 'codex', '--key', '--yes')
    const [, ...fields] = one.read('.codex/config.toml').trim().split('\n')
    one.put('.codex/config.toml', '[mcp_servers.berth]\ntool_timeout_sec = 60\n')
    await one.agents('setup', 'codex', '--key', '--yes')
    expect(one.read('.codex/config.toml').trim().split('\n').slice(1)).toEqual([
      ...fields,
      'tool_timeout_sec = 60',
    ])
    expect(fields.length).toBeGreaterThan(1)
  })

  test('leaves a file alone that it cannot read or change safely, and says where and what to do', async () => {
    using one = person()
    one.put('.cursor/mcp.json', '{\n  "mcpServers": {\n    broken\n')
    expect(await one.agents('setup', 'cursor', '--yes')).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining('.cursor/mcp.json is no JSON in line 3'),
    })
    one.put('.codex/config.toml', 'mcp_servers = { berth = { url = "http://127.0.0.1:1/mcp" } }\n')
    expect(await one.agents('setup', 'codex', '--yes')).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining('cannot be changed safely'),
    })
    expect(one.read('.cursor/mcp.json')).toBe('{\n  "mcpServers": {\n    broken\n')
    expect(one.read('.codex/config.toml')).toBe(
      'mcp_servers = { berth = { url = "http://127.0.0.1:1/mcp" } }\n',
    )
  })

  test('writes no key: with --key the host takes it from the environment', async () => {
    using one = person()
    for (const { id, withKey } of MCP_HOSTS) {
      const { exitCode, stdout, stderr } = await one.agents('setup', id, '--key', '--yes')
      expect([id, exitCode]).toEqual([id, withKey === null ? 1 : 0])
      expect(stdout + stderr).not.toContain('sk_live_')
    }
    expect(one.read('.claude.json')).toContain('"Bearer $' + '{BERTH_API_KEY}"')
  })

  test("with --project it writes this directory's files", async () => {
    using one = person()
    await one.agents('setup', 'claude', 'vscode', '--project', '--yes')
    expect(JSON.parse(readFileSync(join(one.cwd, '.mcp.json'), 'utf8'))).toEqual({
      mcpServers: { berth: { type: 'http', url: url() } },
    })
    expect(existsSync(join(one.cwd, '.vscode/mcp.json'))).toBe(true)
    expect(existsSync(join(one.home, '.claude.json'))).toBe(false)
    expect((await one.agents('setup', 'copilot', '--project')).stderr).toContain('has no file of a project')
  })

  test('asks a person, file by file', async () => {
    using one = person()
    const args = ['agents', 'setup', 'cursor', 'gemini', '--base-url', berth.info.base_url]
    await using terminal = onTerminal([...berthCommand, ...args], { cwd: one.cwd, env: one.env })
    await terminal.shows(/Write \S+mcp\.json\?.*\[y\/N\]/)
    terminal.type('n\r')
    await terminal.shows(/Write \S+settings\.json\?.*\[y\/N\]/)
    terminal.type('y\r')
    expect(await terminal.exited).toBe(0)
    expect(existsSync(join(one.home, '.cursor/mcp.json'))).toBe(false)
    expect(JSON.parse(one.read('.gemini/settings.json'))).toEqual({
      mcpServers: { berth: { httpUrl: url() } },
    })
  })

  test('names what it knows where it is asked for another', async () => {
    using one = person()
    expect((await one.agents('setup', 'emacs')).stderr).toContain(
      'it knows claude, codex, copilot, cursor, gemini, qwen, vscode',
    )
    expect((await one.agents('setup')).stderr).toContain('None of the hosts that berth knows is here.')
  })
})
