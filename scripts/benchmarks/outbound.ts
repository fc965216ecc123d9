/**
 * Measures what a program of a server reaches outside against the same program without a server. Started by
 * `network.ts` in a network of its own, for which it makes a second one that stands for the internet.
 */
import { readLine, startInstance } from './instance.ts'
import { median, print, type Row, times } from './measure.ts'

const ROUNDS = 5
const ADDRESS = '93.184.216.34'
const LARGE_MB = 20

const INTERNET = `
const large = new Uint8Array(${LARGE_MB}e6)
Bun.serve({ port: 80, hostname: '0.0.0.0', fetch: (request) =>
  new Response(request.url.endsWith('/large') ? large : 'hello world') })
console.log('up')
// Ends with the program that has started it.
process.stdin.on('end', () => process.exit()).resume()`

const url = `http://${ADDRESS}/`
const rate = (more: string): string => `wrk -t1 -c16 -d1s ${more} ${url} | sed -n 's/^Requests.sec: *//p'`
const curl = (what: string, more: string): string =>
  `curl --silent --output /dev/null --write-out '%{${what}}\\n' ${more}`

/** Commands that print numbers, the median of which counts. */
const MEASURES: Array<[what: string, command: string, show: (value: number) => string]> = [
  ['requests a second, kept-alive connections', rate(''), (value) => value.toFixed(0)],
  ['requests a second, a connection for each', rate("-H 'Connection: close'"), (value) => value.toFixed(0)],
  [
    `a response of ${LARGE_MB} MB`,
    curl('speed_download', `${url}large`),
    (value) => `${(value / 1e6).toFixed(0)} MB/s`,
  ],
  [
    'connect and first byte',
    `for n in 1 2 3 4 5 6 7 8 9 10; do ${curl('time_starttransfer', url)}; done`,
    (value) => `${(value * 1e6).toFixed(0)} µs`,
  ],
]

function must(...argv: string[]): void {
  const { exitCode, stderr } = Bun.spawnSync(argv, { stdout: 'ignore', stderr: 'pipe' })
  if (exitCode !== 0) throw new Error(`${argv.join(' ')}: ${stderr}`)
}

must('ip', 'link', 'set', 'lo', 'up')
const begin = ['sh', '-c', 'read go && exec "$@"', 'sh', process.execPath, '-e', INTERNET]
const internet = Bun.spawn(['unshare', '--net', ...begin], {
  stdio: ['pipe', 'pipe', 'inherit'],
})
// unshare has made the network when the shell waits.
while ((await Bun.file(`/proc/${internet.pid}/comm`).text()).trim() === 'unshare') await Bun.sleep(5)
must('ip', 'link', 'add', 'out', 'type', 'veth', 'peer', 'name', 'in', 'netns', String(internet.pid))
must('ip', 'addr', 'add', '93.184.216.1/24', 'dev', 'out')
must('ip', 'link', 'set', 'out', 'up')
const inside = ['nsenter', '--net', '--target', String(internet.pid), 'ip']
must(...inside, 'addr', 'add', `${ADDRESS}/24`, 'dev', 'in')
must(...inside, 'link', 'set', 'in', 'up')
internet.stdin.write('go\n')
internet.stdin.flush()
await readLine(internet.stdout)

await using berth = await startInstance()
const { id } = await berth.call('POST', '/servers', { tier: 'large' })
const numbers = (text: string): number => median(text.trim().split('\n').map(Number))
const rows: Row[] = []
for (const [what, command, show] of MEASURES) {
  const taken = { server: [] as number[], direct: [] as number[] }
  for (let round = 0; round < ROUNDS; round++) {
    const { stdout } = await berth.call('POST', `/servers/${id}/exec`, { command })
    taken.server.push(numbers(stdout))
    const direct = Bun.spawn(['sh', '-c', command], { stdio: ['ignore', 'pipe', 'ignore'] })
    taken.direct.push(numbers(await direct.stdout.text()))
  }
  rows.push({
    what,
    measured: show(median(taken.server)),
    baseline: `without a server ${show(median(taken.direct))}`,
    ratio: times(median(taken.server.map((value, round) => value / (taken.direct[round] ?? Number.NaN)))),
  })
}
print(`What a server reaches outside (isolation ${berth.isolation})`, rows)
internet.kill('SIGKILL')
