import type { TestBerth } from './berth.ts'
import { until } from './processes.ts'

/** A build as the API shows it. */
export interface ShownBuild {
  id: string
  serverId: string
  goal: string
  status: string
  steps: { key: string; label: string; status: string }[]
  artifacts: string[]
  url: string | null
  createdAt: string
}

/** How long a build of a test may take: other tests may keep the machine busy. */
const PATIENCE_MS = 60_000

/** The phases, in order. */
export const PHASES = ['plan', 'scaffold', 'implement', 'install', 'build', 'deploy']

/** The states of a build that came to its end in a phase: those before it are done, it and those after it are not. */
export const upTo = (key: string): string[] =>
  PHASES.map((_, n) => (n < PHASES.indexOf(key) ? 'done' : 'pending'))

/** A build as it is now. */
export async function shownBuild(berth: TestBerth, serverId: string, id: string): Promise<ShownBuild> {
  return (await berth.call('GET', `/servers/${serverId}/builds/${id}`)).body.build
}

/** Begins a build; returns its id. */
export async function begun(berth: TestBerth, serverId: string, goal: string): Promise<string> {
  const { status, body } = await berth.call('POST', `/servers/${serverId}/builds`, { goal })
  if (status !== 201) throw new Error(`no build: ${status} ${JSON.stringify(body)}`)
  return body.build_id
}

/** Waits until a build is over. */
export async function over(berth: TestBerth, serverId: string, id: string): Promise<ShownBuild> {
  let build = await shownBuild(berth, serverId, id)
  const isOver = async () => {
    build = await shownBuild(berth, serverId, id)
    return build.status === 'completed'
  }
  await until(isOver, `the build ${id} to be over`, PATIENCE_MS)
  return build
}

/** Begins a build and waits until it is over. */
export const built = async (berth: TestBerth, serverId: string, goal: string): Promise<ShownBuild> =>
  over(berth, serverId, await begun(berth, serverId, goal))

/** Waits until a phase of a build is under way. */
export const reaches = (berth: TestBerth, serverId: string, id: string, key: string): Promise<void> =>
  until(
    async () =>
      (await shownBuild(berth, serverId, id)).steps.find((step) => step.key === key)?.status === 'running',
    `the build ${id} to be in ${key}`,
    PATIENCE_MS,
  )

/** What a build has logged: each line with its source. */
export async function buildLog(berth: TestBerth, serverId: string, id: string): Promise<string> {
  const { body } = await berth.call('GET', `/servers/${serverId}/builds/${id}/logs?tail=500`)
  return body.logs
    .map(({ source, text }: { source: string; text: string }) => `${source}: ${text}`)
    .join('\n')
}

/** The states of a build's phases, in order. */
export const statesOf = ({ steps }: ShownBuild): string[] => steps.map(({ status }) => status)

const WAIT = 'until [ -e go ]; do sleep 0.02; done'
const APP =
  'Bun.serve({ port: process.env.PORT, hostname: process.env.HOST, fetch: () => new Response("up") })'

/** A directive that keeps a build in the phase implement until the file `go` is there. */
export const HOLD = `run: ${WAIT}`

/** A directive that writes a manifest. */
export const manifest = (fields: object): string => `write: berth.json <<< ${JSON.stringify(fields)}`

/** Directives that keep a build in a phase until the file `go` is there. The first two phases cannot be held. */
export const HELD: Readonly<Record<string, string>> = {
  implement: HOLD,
  install: manifest({ install: WAIT, static: { folder: '' } }),
  build: manifest({ build: WAIT, static: { folder: '' } }),
  deploy: `write: app.ts <<< ${APP}\n${manifest({ start: `${WAIT}; exec bun app.ts` })}`,
}

/** Lets a build that is held go on. */
export const letGo = (berth: TestBerth, serverId: string) =>
  berth.call('PUT', `/servers/${serverId}/files`, { path: 'go', content: '' })
