import type { Stage, Typist } from './stage.ts'

/** A session that is shown in the documentation. */
interface Session {
  /** As the page names it. */
  readonly name: string
  /** Directory below the home directory. */
  readonly cwd: string
  /** Works on the terminal; `stage` is for what somebody else does meanwhile. */
  readonly work: (typist: Typist, stage: Stage) => Promise<void>
}

const CTRL_C = '\u0003'

const SERVER_JS = "Bun.serve({ port: process.env.PORT, fetch: () => new Response('Hello') })\n"

const INDEX_HTML = '<h1>Hello</h1>\n'

/** Makes what the sessions begin with: files, and an instance in \`work\`. */
export async function setStage(stage: Stage): Promise<void> {
  stage.write('work/shop/berth.json', '{ "start": "bun server.js" }\n')
  stage.write('work/shop/server.js', SERVER_JS)
  stage.write('work/site/index.html', INDEX_HTML)
  stage.write('work/notes.txt', 'buy milk\n')
  stage.write(
    'team/berth.yaml',
    `projects:
  api:
    directory: api
    visibility: public
    secrets: { GREETING: Hello }
  web:
    directory: web
    visibility: public
`,
  )
  stage.write('team/api/berth.json', '{ "start": "bun api.js" }\n')
  stage.write(
    'team/api/api.js',
    'Bun.serve({ port: process.env.PORT, fetch: () => new Response(process.env.GREETING) })\n',
  )
  stage.write('team/web/index.html', '<h1>Hello</h1>\n')
  stage.write('.claude.json', '{\n  "theme": "dark"\n}\n')
  await stage.run('berth serve --detach', 'work')
}

/** Every session, in order: each finds what those before have left. */
export const SESSIONS: readonly Session[] = [
  {
    name: 'push',
    cwd: 'work/shop',
    async work(typist) {
      await typist.run('berth servers create shop')
      await typist.run('berth projects push')
      await typist.run('sed -i s/Hello/Moin/ server.js')
      await typist.run('berth projects push')
    },
  },
  {
    name: 'push --watch',
    cwd: 'work/shop',
    async work(typist, stage) {
      await typist.begin('berth projects push --watch', 'Watching')
      const server = SERVER_JS.replace('Hello', 'Ahoy')
      stage.write('work/shop/server.js', server)
      await typist.shows('server.js sent')
      // Before it listens: the health check may meet one that ends after, or not.
      const failure = "console.error('No database.'); process.exit(1)\n"
      stage.write('work/shop/server.js', failure + server)
      await typist.shows('could not be brought up')
      stage.write('work/shop/server.js', server)
      await typist.shows('Back at')
      typist.keys(CTRL_C)
      await typist.prompt()
    },
  },
  {
    name: 'logs',
    cwd: 'work/shop',
    async work(typist) {
      await typist.run('berth projects logs shop --tail 4')
      await typist.run('berth projects logs shop --since 1h | grep database')
    },
  },
  {
    name: 'shell',
    cwd: 'work',
    async work(typist) {
      await typist.begin('berth shell shop', '$ ')
      typist.keys('ls projects/shop\r')
      // Keys before the prompt would be shown twice.
      await typist.shows(/server\.js\s+shop:\S+\$ $/)
      typist.keys('exit 3\r')
      await typist.prompt()
      await typist.run('echo $?')
    },
  },
  {
    name: 'exec -t',
    cwd: 'work',
    async work(typist) {
      await typist.begin(`berth exec -t shop 'printf "Name? "; read name; echo "Moin, $name."'`, /\nName\? $/)
      typist.keys('Ada\r')
      await typist.prompt()
    },
  },
  {
    name: 'cp',
    cwd: 'work',
    async work(typist) {
      await typist.run('berth cp notes.txt shop:')
      await typist.run('berth cp site shop:www')
      await typist.run('berth cp shop:notes.txt - | wc -l')
      await typist.run('berth cp shop:www/index.html back.html')
    },
  },
  {
    name: 'sync',
    cwd: 'work/site',
    async work(typist, stage) {
      await typist.run('berth sync . shop:www')
      await typist.begin('berth sync . shop:www --watch --delete', 'Watching')
      stage.write('work/site/about.html', 'About us\n')
      await typist.shows('about.html sent')
      typist.keys(CTRL_C)
      await typist.prompt()
    },
  },
  {
    name: 'use',
    cwd: 'work',
    async work(typist, stage) {
      await stage.run('berth servers create docs', 'work')
      await typist.run('berth exec pwd')
      await typist.run('berth use docs')
      await typist.run('berth exec pwd')
      await typist.run('berth use')
    },
  },
  {
    name: 'deploy --watch',
    cwd: 'work',
    async work(typist, stage) {
      await typist.begin('berth deploy site --watch', 'Watching')
      stage.write('work/site/index.html', INDEX_HTML.replace('Hello', 'Moin'))
      await typist.shows('index.html sent')
      typist.keys(CTRL_C)
      await typist.prompt()
    },
  },
  {
    name: 'up',
    cwd: 'team',
    async work(typist) {
      await typist.run('cat berth.yaml')
      await typist.begin('berth up', 'Following the logs')
      typist.keys(CTRL_C)
      await typist.prompt()
    },
  },
  {
    name: 'up --detach',
    cwd: 'team',
    async work(typist) {
      await typist.run('berth up --detach')
      await typist.run('berth down')
    },
  },
  {
    name: 'serve',
    cwd: 'team',
    async work(typist, stage) {
      await typist.begin('berth serve', 'Stop with')
      await stage.run('berth servers create docs', 'team')
      // The last of its requests: it looks whether another server has the label.
      await typist.shows('servers.list')
      typist.keys('l')
      await typist.shows('Bodies are shown.')
      await stage.run('berth keys create ci', 'team')
      await typist.shows('"key": "***"')
      typist.keys('?')
      await typist.shows('quit')
      typist.keys('q')
      await typist.prompt()
    },
  },
  {
    name: 'agents setup',
    cwd: 'work',
    async work(typist) {
      await typist.begin('berth agents setup', '[y/N]')
      typist.keys('y\r')
      await typist.prompt()
    },
  },
]
