import { chmodSync, mkdirSync, mkdtempSync, realpathSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { Terminal } from '@xterm/headless'
import { shellQuote } from '../../src/runtime/shell-quote.ts'

/** What the shell's prompt begins with: a mark that no terminal shows (OSC 133, as shells mark prompts). */
const PROMPT_MARK = '\u001b]133;A\u0007'

/** Milliseconds within which anything is shown, on a machine with much else to do. */
const PATIENCE_MS = 60_000

/** Width of the terminal. */
const COLUMNS = 110

/** What a person has who sits down at berth: a home directory, and berth on the path. */
export class Stage implements AsyncDisposable {
  /** Absolute path, shown as `/home/ada`. */
  readonly home: string
  readonly #env: Record<string, string>
  readonly #top: string

  /**
   * @param berth the words of the command that is berth
   * @param projectPorts for the apps, as `--project-ports` takes them
   */
  constructor(berth: readonly string[], projectPorts: string) {
    this.#top = realpathSync(mkdtempSync(join(tmpdir(), 'berth-record-')))
    this.home = join(this.#top, 'ada')
    this.write('../bin/berth', `#!/bin/sh\nexec ${shellQuote(berth)} "$@"\n`)
    chmodSync(join(this.#top, 'bin/berth'), 0o755)
    mkdirSync(this.home)
    this.#env = {
      PATH: `${join(this.#top, 'bin')}:${process.env.PATH ?? '/usr/bin:/bin'}`,
      HOME: this.home,
      TERM: 'xterm-256color',
      LANG: 'C.UTF-8',
      PS1: `${PROMPT_MARK}$ `,
      BERTH_PORT: '0',
      BERTH_PROJECT_PORTS: projectPorts,
      BERTH_LOG_LEVEL: 'error',
    }
  }

  /** Writes a file, by its path below the home directory, in one step: what watches the directory sees it empty never. */
  write(path: string, text: string): void {
    const file = join(this.home, path)
    const whole = join(this.#top, 'whole')
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(whole, text)
    renameSync(whole, file)
  }

  /** Runs a shell command that is not shown, and returns its output. @throws Error if it fails */
  async run(command: string, cwd = '.'): Promise<string> {
    const options = { cwd: join(this.home, cwd), env: this.#env, stdin: 'ignore' } as const
    const child = Bun.spawn(['sh', '-c', command], { ...options, stdout: 'pipe', stderr: 'pipe' })
    const [stdout, stderr, exitCode] = await Promise.all([
      child.stdout.text(),
      child.stderr.text(),
      child.exited,
    ])
    if (exitCode === 0) return stdout
    throw new Error(`${command} ended with ${exitCode}: ${stderr}`)
  }

  /**
   * Opens a terminal in a directory, has a person work on it, and closes it.
   *
   * @returns what the terminal shows in the end, as text; the home directory is `/home/ada`
   */
  async record(cwd: string, work: (typist: Typist) => Promise<void>): Promise<string> {
    await using typist = new Typist(join(this.home, cwd), this.#env)
    await typist.prompt()
    await work(typist)
    const text = await typist.text()
    const known = text.replaceAll(this.home, '/home/ada').replace(/\n?\$ ?$/, '')
    return known.replace(/\b(sk_live_|admin_|signin\/link\/)[\w…]+/g, '$1…')
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.run('berth stop --all --yes')
    rmSync(this.#top, { recursive: true, force: true })
  }
}

/** Types on a terminal with a shell, as a person does. */
export class Typist implements AsyncDisposable {
  readonly #screen = new Terminal({ cols: COLUMNS, rows: 40, scrollback: 10_000, allowProposedApi: true })
  readonly #decoder = new TextDecoder()
  readonly #child: Bun.Subprocess
  #output = ''
  #prompts = 0
  /** How much of the output was there before the last key. */
  #typedAt = 0
  #changed = Promise.withResolvers<void>()

  constructor(cwd: string, env: Record<string, string>) {
    this.#child = Bun.spawn(['sh', '-i'], {
      cwd,
      env,
      terminal: {
        cols: COLUMNS,
        rows: 40,
        data: (_, data) => {
          this.#screen.write(data)
          this.#output += this.#decoder.decode(data, { stream: true })
          this.#changed.resolve()
          this.#changed = Promise.withResolvers()
        },
      },
    })
  }

  /** Types a command, and waits until it has ended. */
  async run(command: string): Promise<void> {
    this.keys(`${command}\r`)
    await this.prompt()
  }

  /** Types a command that goes on, and waits until it shows something. */
  async begin(command: string, shows: string | RegExp): Promise<void> {
    this.keys(`${command}\r`)
    await this.shows(shows)
  }

  /** Presses keys. */
  keys(keys: string): void {
    this.#typedAt = this.#output.length
    this.#child.terminal?.write(keys)
  }

  /** Waits until the terminal has shown something since the last key. @throws Error after a minute */
  shows(wanted: string | RegExp): Promise<void> {
    return this.#until(String(wanted), () => {
      const text = Bun.stripANSI(this.#output.slice(this.#typedAt))
      return typeof wanted === 'string' ? text.includes(wanted) : wanted.test(text)
    })
  }

  /** Waits for the shell's next prompt. */
  async prompt(): Promise<void> {
    await this.#until('a prompt', () => this.#output.split(PROMPT_MARK).length - 1 > this.#prompts)
    this.#prompts += 1
  }

  /** Returns all that was shown, as lines of text. */
  async text(): Promise<string> {
    await new Promise<void>((resolve) => this.#screen.write('', resolve))
    const { normal } = this.#screen.buffer
    let text = ''
    for (let at = 0; at < normal.length; at += 1) {
      const line = normal.getLine(at)
      text += (line?.isWrapped || at === 0 ? '' : '\n') + (line?.translateToString(true) ?? '')
    }
    return text.replace(/\n+$/, '')
  }

  async #until(what: string, isThere: () => boolean): Promise<void> {
    const late = Promise.withResolvers<void>()
    let isLate = false
    const timer = setTimeout(() => {
      isLate = true
      late.resolve()
    }, PATIENCE_MS)
    while (!isThere() && !isLate) await Promise.race([this.#changed.promise, late.promise])
    clearTimeout(timer)
    if (!isThere()) throw new Error(`${what} did not show; the terminal has:\n${await this.text()}`)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#child.kill('SIGHUP')
    this.#child.kill('SIGKILL')
    await this.#child.exited
    this.#child.terminal?.close()
    this.#screen.dispose()
  }
}
