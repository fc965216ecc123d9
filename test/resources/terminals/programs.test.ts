import { setDefaultTimeout, test } from 'bun:test'
import { berthForTests } from '../../support/berth.ts'
import { until } from '../../support/processes.ts'
import { TestViewer } from '../../support/viewer.ts'

setDefaultTimeout(30_000)

const berth = await berthForTests()
const server = await berth.server()

/** What is done with a program in a shell, and what its screen and a second viewer's then show. */
interface Use {
  /** The command line. */
  start: string
  /** What the screen shows when it takes keys. */
  shows: string
  keys: string
  showsNext: string
  /** The keys that end it. */
  ends: string
}

const PROGRAMS: Record<string, Use> = {
  vim: {
    start: 'vim -u NONE a.txt',
    shows: '~',
    keys: 'ihéllo 漢字 😀\x1b:w\r',
    showsNext: 'written',
    ends: ':q\r',
  },
  top: { start: 'top -d 60', shows: 'PID', keys: 'h', showsNext: 'Help', ends: 'qq\x03' },
  htop: { start: 'htop', shows: 'PID', keys: '\x1bOP', showsNext: 'Help', ends: 'qqq' },
  less: { start: 'seq 500 | less', shows: '20', keys: 'G', showsNext: '500', ends: 'q' },
  tmux: {
    start: 'tmux -L berth new',
    shows: '[0]',
    keys: 'echo in-$((40+2))-tmux\r',
    showsNext: 'in-42-tmux',
    ends: 'exit\r',
  },
  python3: { start: 'python3 -q', shows: '>>>', keys: 'print(6 * 7)\r', showsNext: '\n42', ends: 'exit()\r' },
  node: { start: 'node', shows: '>', keys: '6 * 7\r', showsNext: '\n42', ends: '.exit\r' },
}

for (const [program, use] of Object.entries(PROGRAMS)) {
  const isMissing = Bun.which(program) === null
  if (isMissing) console.error(`SKIP ${program} on a terminal: it is not installed`)

  test.skipIf(isMissing)(
    `${program} draws, takes keys, looks the same to a second viewer, and leaves the shell as it was`,
    async () => {
      const found = (await berth.exec(server, `command -v ${program}`)).exitCode === 0
      if (!found) return console.error(`SKIP ${program} on a terminal: servers do not see it`)
      const { body } = await berth.call('POST', `/servers/${server}/terminals`, {})
      const path = `/servers/${server}/terminals/${body.terminal.id}`
      const viewer = await TestViewer.attach(berth, `${path}/attach`)
      const screen = async () => (await viewer.screen()).join('\n')
      const showing = (text: string) =>
        until(async () => (await screen()).includes(text), `${text} in ${program}`).catch(async (error) => {
          throw new Error(`${error.message}: ${await screen()}`)
        })
      await viewer.shows('$ ')
      viewer.type(`${use.start}\r`)
      await showing(use.shows)
      viewer.type(use.keys)
      await showing(use.showsNext)
      const second = await TestViewer.attach(berth, `${path}/attach`)
      await until(
        async () => String(await second.screen()) === String(await viewer.screen()),
        'the same screen',
      )
      second.close()
      viewer.type(use.ends)
      const hasEnded = async () => (await berth.exec(server, `pgrep ${program}`)).exitCode !== 0
      await until(hasEnded, `the end of ${program}`)
      viewer.type('\recho "back $((1+1))"\r')
      await showing('back 2')
      await berth.call('DELETE', path)
    },
  )
}
