import { chmodSync, existsSync, mkdirSync, openSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { decide, type SignedInBrowser, signInBrowser } from '../signin/browser-session.ts'
import { until } from '../support/processes.ts'
import { command } from '../support/serve.ts'
import { bareEnvironment, type Outcome, run, temporaryFolder } from './command.ts'

/** A person with a config folder of their own, in a working directory without a data folder. */
export interface Person extends Disposable {
  readonly cwd: string
  /** The environment by which commands are theirs. */
  readonly env: Record<string, string>
  /** The file of their keys. */
  readonly path: string
  /** What it keeps. */
  // biome-ignore lint/suspicious/noExplicitAny: a test reads whatever shape it expects
  kept(): any
  run(args: readonly string[], env?: Record<string, string>): Promise<Outcome>
}

/** A person who has never signed in. */
export function newPerson(): Person {
  const folder = temporaryFolder()
  const env = { XDG_CONFIG_HOME: join(folder.path, 'config'), HOME: folder.path }
  const path = join(folder.path, 'config/berth/credentials.json')
  return {
    cwd: folder.path,
    env,
    path,
    kept: () => (existsSync(path) ? JSON.parse(readFileSync(path, 'utf8')) : null),
    run: (args, more = {}) => run(args, { cwd: folder.path, env: { ...env, ...more } }),
    [Symbol.dispose]: () => folder[Symbol.dispose](),
  }
}

/** A desktop whose opener writes down what it is given, in place of a browser. */
export interface Desktop {
  /** The environment of programs on it. */
  readonly env: Record<string, string>
  /** Where the opener writes. */
  readonly path: string
  /** What was opened. Nobody waits for the opener, which may be slower than the command that has begun it. */
  opened(): Promise<string>
}

/** A person's desktop; its opener ends with `exitCode`. */
export function desktopOf({ cwd }: Person, exitCode = 0): Desktop {
  const path = join(cwd, 'opened')
  const opener = join(cwd, 'xdg-open')
  writeFileSync(
    opener,
    `#!/bin/sh\nprintf '%s' "$*" > '${path}.new' && mv '${path}.new' '${path}'\nexit ${exitCode}\n`,
  )
  chmodSync(opener, 0o755)
  return {
    env: { DISPLAY: ':0', PATH: `${cwd}:${process.env.PATH ?? '/usr/bin:/bin'}` },
    path,
    async opened() {
      await until(() => existsSync(path), 'the opener has written')
      return readFileSync(path, 'utf8')
    },
  }
}

/** A `berth login` under way. */
export interface SigningIn extends AsyncDisposable {
  readonly pid: number
  /** The address of the page that it has printed last. */
  page(): Promise<URL>
  /** Resolves when stderr so far holds the text. */
  says(text: string): Promise<void>
  /** Types a line on its standard input, and leaves that open. */
  type(line: string): void
  kill(signal: NodeJS.Signals): void
  readonly ended: Promise<Outcome>
}

/** Starts `berth login` with pipes. */
export function startLogin(
  args: readonly string[],
  { cwd, env }: Pick<Person, 'cwd' | 'env'>,
  more: Record<string, string> = {},
): SigningIn {
  const child = Bun.spawn([...command, 'login', ...args], {
    cwd,
    env: bareEnvironment({ ...env, ...more }),
    stdin: 'pipe',
    stdout: 'pipe',
    stderr: 'pipe',
  })
  let said = ''
  let isOver = false
  let changed = (): void => {}
  const stderr = (async () => {
    const decoder = new TextDecoder()
    for await (const chunk of child.stderr) {
      said += decoder.decode(chunk, { stream: true })
      changed()
    }
    isOver = true
    changed()
    return said
  })()
  const ended = Promise.all([child.stdout.bytes(), stderr, child.exited]).then(([bytes, err, exitCode]) => ({
    bytes,
    stdout: new TextDecoder().decode(bytes),
    stderr: err,
    exitCode,
  }))
  const hears = (holds: () => boolean, what: string): Promise<void> =>
    new Promise((resolve, reject) => {
      changed = () => {
        if (holds()) resolve()
        else if (isOver) reject(new Error(`${what} was not said, but ${JSON.stringify(said)}`))
      }
      changed()
    })
  const pages = () => [...said.matchAll(/^ {2}(http\S+)$/gm)]
  return {
    pid: child.pid,
    async page() {
      await hears(() => pages().length > 0, 'the address')
      return new URL(pages().at(-1)?.[1] ?? '')
    },
    says: (text) => hears(() => said.includes(text), text),
    type(line) {
      child.stdin.write(`${line}\n`)
      child.stdin.flush()
    },
    kill: (signal) => child.kill(signal),
    ended,
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL')
      await ended
    },
  }
}

/** An instance to sign in to. */
interface Signable {
  base_url: string
  api_key: string
}

/** Presses a button on the page that a terminal has printed; the browser follows nothing by itself. */
export async function decideAt(
  page: URL,
  by: SignedInBrowser,
  decision: 'approve' | 'deny',
): Promise<Response> {
  return decide(by, `${page.pathname}${page.search}`, decision)
}

/** The code that the page shows to be typed in. */
export async function codeAt(page: URL, by: SignedInBrowser): Promise<string> {
  const shown = await decideAt(page, by, 'approve')
  return /id="code">([^<]+)</.exec(await shown.text())?.[1] ?? ''
}

/** Signs a person in, from the command to its end. */
export async function signIn(
  person: Pick<Person, 'cwd' | 'env'>,
  { base_url, api_key }: Signable,
  args: readonly string[] = [],
): Promise<Outcome> {
  await using login = startLogin([base_url, '--no-browser', ...args], person)
  const browser = await signInBrowser(base_url, api_key)
  login.type(await codeAt(await login.page(), browser))
  const outcome = await login.ended
  if (outcome.exitCode !== 0) throw new Error(outcome.stderr)
  return outcome
}

/** Makes the data folder in a working directory as an instance leaves it while it runs. */
export function dataFolder(cwd: string, { info }: { info: Signable }): string {
  const folder = join(cwd, '.berth')
  mkdirSync(folder, { recursive: true })
  // Held until the tests of the file are over.
  openSync(join(folder, 'lock'), 'w')
  writeFileSync(join(folder, 'instance.json'), JSON.stringify({ pid: process.pid, base_url: info.base_url }))
  writeFileSync(join(folder, 'credentials.json'), JSON.stringify({ api_key: info.api_key }))
  return folder
}
