import { type Instance, memoryOf, startInstance } from './instance.ts'
import { median, ms, print, quantile, samples, time } from './measure.ts'

/** Rounds in which tasks and bare commands take turns, and how many of each. */
const ROUNDS = 10
const PER_ROUND = 10

/** Commands of a task that is timed. */
const COMMANDS = 3

/** Tasks at once, and the servers that they are on. */
const MANY = 200
const SERVERS = 10

/** Lines by which the lag of a stream is measured. */
const LINES = 400

/** What a scripted task takes beside its commands, many at once, and how late a follower sees what is printed. */
export async function benchTasks(): Promise<void> {
  await using berth = await startInstance()
  const { id } = await berth.call('POST', '/servers')
  const goal = Array<string>(COMMANDS).fill('run: true').join('\n')
  const task = () => runToEnd(berth, id, goal)
  const bare = async () => {
    for (let n = 0; n < COMMANDS; n++)
      await Bun.spawn(['sh', '-c', 'true'], { stdio: ['ignore', 'ignore', 'ignore'] }).exited
  }
  const taken = { task: [] as number[], bare: [] as number[] }
  // In turns, so that whatever else the machine does falls on both.
  for (let round = 0; round < ROUNDS; round++) {
    taken.bare.push(...(await samples(PER_ROUND, round === 0 ? 20 : 2, bare)))
    taken.task.push(...(await samples(PER_ROUND, round === 0 ? 20 : 2, task)))
  }
  const over = median(taken.task) - median(taken.bare)
  const many = await manyAtOnce(berth)
  const lags = await lagOfLines(berth, id)
  const slow = quantile(lags, 0.99)
  print(`Tasks of the scripted agent (isolation ${berth.isolation})`, [
    {
      what: `create → completed beside its ${COMMANDS} commands, median`,
      measured: ms(over),
      baseline: `the commands alone ${ms(median(taken.bare))}`,
      goal: '≤ 15 ms',
      met: over <= 15,
    },
    {
      what: `${MANY} tasks at once on ${SERVERS} servers: completed`,
      measured: String(many.completed),
      goal: String(MANY),
      met: many.completed === MANY,
    },
    { what: 'the same: all over after', measured: ms(many.took) },
    {
      what: 'the same: private memory of berth, most, and when they are over',
      measured: `${megabytes(many.most)}, ${megabytes(many.after)}`,
      baseline: `before ${megabytes(many.before)}`,
    },
    { what: 'printed → seen by a follower, median', measured: ms(median(lags)) },
    { what: 'printed → seen by a follower, p99', measured: ms(slow), goal: '≤ 50 ms', met: slow <= 50 },
  ])
}

const megabytes = (bytes: number): string => `${(bytes / 1e6).toFixed(1)} MB`

/** Gives a goal and follows the task to its end; resolves to its last state. */
async function runToEnd(berth: Instance, server: string, goal: string): Promise<string> {
  const { task_id: id } = await berth.call('POST', `/servers/${server}/tasks`, { goal })
  let last = ''
  for await (const event of follow(berth, server, id)) if (event.type === 'status') last = event.status
  return last
}

/** What a follower of a task is sent. */
interface Followed {
  type: string
  status: string
  text: string
}

/** The events of a task as they come. */
async function* follow(berth: Instance, server: string, id: string): AsyncGenerator<Followed> {
  const headers = { authorization: `Bearer ${berth.key}`, accept: 'text/event-stream' }
  const { body } = await fetch(`${berth.url}/servers/${server}/tasks/${id}/events`, { headers })
  const decoder = new TextDecoder()
  let text = ''
  for await (const chunk of body ?? []) {
    text += decoder.decode(chunk, { stream: true })
    const events = text.split('\n\n')
    text = events.pop() ?? ''
    for (const event of events) {
      const data = /^data: (.*)$/m.exec(event)?.[1]
      if (data !== undefined) yield JSON.parse(data)
    }
  }
}

/** Tasks that each run a command, write a file and print, all begun at once. */
async function manyAtOnce(berth: Instance) {
  const servers: string[] = []
  for (let n = 0; n < SERVERS; n++) servers.push((await berth.call('POST', '/servers')).id)
  await Bun.sleep(500)
  const before = memoryOf(berth.pid).own
  let most = before
  const watch = setInterval(() => {
    most = Math.max(most, memoryOf(berth.pid).own)
  }, 100)
  let ended: string[] = []
  const took = await time(async () => {
    const goal = (n: number) => `run: seq 200; sleep 0.5\nwrite: ${n}.txt <<< ${n}\nrun: cat ${n}.txt`
    const begun = Array.from({ length: MANY }, (_, n) => runToEnd(berth, servers[n % SERVERS] ?? '', goal(n)))
    ended = await Promise.all(begun)
  })
  clearInterval(watch)
  await Bun.sleep(1_000)
  const after = memoryOf(berth.pid).own
  for (const server of servers) await berth.call('DELETE', `/servers/${server}`)
  return { completed: ended.filter((status) => status === 'completed').length, took, before, most, after }
}

/** Milliseconds from each line that a command prints, with the time in it, to its arrival. */
async function lagOfLines(berth: Instance, server: string): Promise<number[]> {
  const goal = `run: i=0; while [ $i -lt ${LINES} ]; do date +%s%N; sleep 0.01; i=$((i+1)); done`
  const { task_id: id } = await berth.call('POST', `/servers/${server}/tasks`, { goal })
  const lags: number[] = []
  for await (const { type, text } of follow(berth, server, id)) {
    const now = performance.timeOrigin + performance.now()
    if (type !== 'output') continue
    for (const line of text.trim().split('\n')) lags.push(now - Number(line) / 1e6)
  }
  return lags
}
