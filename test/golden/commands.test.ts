/** Golden traces of the command line: what commands print and their exit codes. See apps.test.ts. */
import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { run, serve, temporaryFolder } from '../cli/command.ts'
import { writeWhole } from '../support/files.ts'
import { projectPorts } from '../support/ports.ts'
import { Names } from './trace.ts'

const APP = `console.log('begins'); Bun.serve({ port: process.env.PORT, fetch: () => new Response(process.env.GREETING ?? 'up') })\n`

/** Lines by where they come from: between which lines of one source those of another appear is up to the machine. */
function grouped(printed: string): string {
  const sources = Map.groupBy(
    printed.trimEnd().split('\n'),
    (line) => /^(?:\w+ +\| )?(?:app |berth |install |build |→|\w+ is up)?/.exec(line)?.[0] ?? '',
  )
  // How long a phase took is printed if it was long. An old version may end after the command that replaced it.
  for (const [source, lines] of sources)
    sources.set(
      source,
      lines.filter((line) => !/[✓✗] \w+ [\d.]+ m?s$|The version before was ended\.$/.test(line)),
    )
  return [...sources]
    .sort(([one], [other]) => one.localeCompare(other))
    .flatMap(([, lines]) => lines)
    .map((line) => line.replace(/ {2,}/g, '  ').replace(/\d+ bytes to send/, 'N bytes to send'))
    .join('\n')
}

/** Runs commands one after the other and keeps what each prints, and its exit code. */
function transcript(directory: string, env: Record<string, string> = {}) {
  const names = new Names()
  const lines: string[] = []
  return {
    async berth(...args: string[]): Promise<string> {
      const { stdout, stderr, exitCode } = await run(args, { cwd: directory, env })
      const printed = [grouped(stdout), stderr && `(stderr) ${grouped(stderr)}`].filter(Boolean)
      const shown = [`$ berth ${args.join(' ')}`, ...printed, `(exit code ${exitCode})`, ''].join('\n')
      lines.push(names.steady(shown.replaceAll(directory, 'DIRECTORY')))
      return stdout
    },
    lines,
  }
}

test('directories are sent, apps come up, fail and go', async () => {
  await using instance = await serve()
  const trace = transcript(instance.cwd)
  const put = (path: string, text: string) => writeWhole(join(instance.cwd, path), text)
  const server = (await trace.berth('servers', 'create', 'demo', '-q')).trim()
  await trace.berth('servers')
  put('site/index.html', 'first')
  put('site/.gitignore', 'private.txt\n')
  put('site/private.txt', 'stays')
  const created = await trace.berth('projects', 'create', 'site', '--server', server, '--public')
  const site = /prj_\w+/.exec(created)?.[0] ?? ''
  await trace.berth('projects', 'push', 'site', '--project', site)
  put('site/index.html', 'second')
  await trace.berth('projects', 'push', 'site', '--project', site)
  await trace.berth('projects', 'get', site)
  put('app/berth.json', '{"start": "bun app.js"}')
  put('app/app.js', 'console.error("no luck"); process.exit(3)')
  await trace.berth('projects', 'create', 'app', '--server', server, '--name', 'app')
  put('app/app.js', APP)
  const running = await trace.berth(
    'projects',
    'create',
    'app',
    '--server',
    server,
    '--name',
    'app',
    '--public',
  )
  const app = /prj_\w+/.exec(running)?.[0] ?? ''
  await trace.berth('projects', 'push', 'nothing-here', '--project', app)
  put('app/app.js', 'console.error("no luck"); process.exit(3)')
  await trace.berth('projects', 'push', 'app', '--project', app)
  await trace.berth('projects', 'restart', app)
  await trace.berth('projects')
  await trace.berth('deploy', 'site', '--server', server)
  await trace.berth('deploy', 'app', '--server', server)
  await trace.berth('deployments', 'list', server)
  await trace.berth('cp', 'site', `${server}:copied`)
  await trace.berth('cp', `${server}:copied/index.html`, 'back.html')
  await trace.berth('cp', `${server}:nothing`, 'back.html')
  await trace.berth('sync', 'site', `${server}:synced`)
  await trace.berth('sync', 'site', `${server}:synced`)
  await trace.berth('files', 'list', server)
  await trace.berth('exec', server, '--', 'sh', '-c', 'echo out; echo err >&2; exit 3')
  await trace.berth('builds', 'run', '--server', server, 'A page\nwrite: index.html <<< <h1>Notes</h1>')
  await trace.berth('tasks', 'run', '--server', server, 'run: exit 3')
  await trace.berth('projects', 'delete', site, '--yes')
  await trace.berth('projects', 'delete', site, '--yes')
  await trace.berth('servers', 'delete', server, '--yes')
  await trace.berth('servers', 'nothing')
  await trace.berth('nothing')
  expect(trace.lines.join('\n')).toMatchSnapshot()
}, 180_000)

test('an environment is brought up, changed and taken down', async () => {
  using folder = temporaryFolder()
  const directory = join(folder.path, 'project')
  const put = (path: string, text: string) => writeWhole(join(directory, path), text)
  put(
    'berth.yaml',
    `projects:
  site: { directory: site, visibility: public }
  app: { directory: app, visibility: public, secrets: { GREETING: { env: GREETING } } }
`,
  )
  put('site/index.html', 'first')
  put('app/berth.json', '{"install": "echo installing", "start": "bun app.js"}')
  put('app/app.js', APP)
  const trace = transcript(directory, {
    HOME: folder.path,
    XDG_STATE_HOME: join(folder.path, 'state'),
    BERTH_PORT: '0',
    BERTH_PROJECT_PORTS: projectPorts(),
    BERTH_LOG_LEVEL: 'error',
    GREETING: 'moin',
  })
  try {
    await trace.berth('up', '--detach')
    put('site/index.html', 'second')
    await trace.berth('up', '--detach')
    put('app/app.js', 'console.error("no luck"); process.exit(3)')
    await trace.berth('up', '--detach')
    await trace.berth('down')
    put('berth.yaml', 'projects:\n  site: { directry: site }\n')
    await trace.berth('up', '--detach')
  } finally {
    await run(['stop'], {
      cwd: directory,
      env: { HOME: folder.path, XDG_STATE_HOME: join(folder.path, 'state') },
    })
  }
  expect(trace.lines.join('\n')).toMatchSnapshot()
}, 180_000)
