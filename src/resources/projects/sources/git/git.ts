import { HelperError, runHelper } from '../../../../runtime/run-helper.ts'
import { SourceError } from '../errors.ts'
import { formatMebibytes } from '../limits.ts'

/** Most lines of output that are logged. A server may send any number. @bound peer */
const MAX_LINES = 500
/** Number of lines kept to explain a failure. */
const KEPT_LINES = 20

/** The options of all commands on one repository. */
interface GitOptions {
  cwd: string
  env: Record<string, string>
  /** Bytes that any file it writes may have. */
  fileLimit: number
  mask: (text: string) => string
  log: (text: string) => void
}

/** The options of one command. */
interface RunOptions {
  signal: AbortSignal
  /** Receives standard output instead of the result. */
  onOutput?: (chunk: Uint8Array) => void
}

/** Runs git commands for one fetch and explains their failures. */
export class Git {
  readonly #options: GitOptions
  #lines = 0

  constructor(options: GitOptions) {
    this.#options = options
  }

  /** Runs a command and resolves to its standard output. @throws SourceError if it fails; the signal's reason */
  async run(args: readonly string[], { signal, onOutput }: RunOptions): Promise<string> {
    const { cwd, env, fileLimit, mask } = this.#options
    const kept: string[] = []
    const onLine = (line: string) => {
      const shown = mask(line)
      kept.push(shown)
      if (kept.length > KEPT_LINES) kept.shift()
      this.#log(shown)
    }
    const { code, output } = await runGit({
      args,
      cwd,
      env,
      fileLimit,
      signal,
      onLine,
      ...(onOutput ? { onOutput } : {}),
    })
    if (code === 0) return output
    throw new SourceError(explainGitFailure(kept, fileLimit))
  }

  #log(line: string): void {
    this.#lines += 1
    if (this.#lines > MAX_LINES) return
    this.#options.log(this.#lines === MAX_LINES ? '(further output is left out)' : line)
  }
}

/** Messages of git, ssh or a server, with the cause and remedy of each. */
const EXPLANATIONS: readonly [RegExp, string][] = [
  [
    /could not read (?:Username|Password)|Authentication failed|terminal prompts disabled|returned error: 40[13]/i,
    'The repository does not exist or wants credentials. Put them into the url, as in https://USER:TOKEN@host/path; they are kept encrypted and shown nowhere.',
  ],
  [
    /returned error: 30\d/,
    'The repository was moved: the server redirects, which is not followed. Use the address that it has now, often one that ends in .git.',
  ],
  [
    /returned error: 404|repository '[^']*' not found|does not appear to be a git repository|not a git repository/i,
    'There is no git repository at the url. Check its spelling and, where it is private, its credentials.',
  ],
  [
    /SSL certificate problem|certificate verif|server certificate/i,
    'The certificate of the server is not trusted here. Start berth with SSL_CERT_FILE set to a file with the certificates of your authorities.',
  ],
  [
    /Host key verification failed|host key is known/i,
    'The host is not known to ssh on this machine. Connect to it once as the user that berth runs as, which adds it to known_hosts.',
  ],
  [
    /Permission denied \(/,
    'The host accepts none of the keys of the ssh agent. Start berth with SSH_AUTH_SOCK set, and add a key with ssh-add that may read the repository.',
  ],
  [
    /not our ref|unadvertised object|couldn't find remote ref/i,
    'The repository has no such commit, or gives out none by its id. Name a branch or a tag.',
  ],
  [/Could not resolve host/i, 'The host of the url does not resolve. Check its spelling.'],
  [
    /Failed to connect|Connection (?:refused|timed out|reset)|Operation too slow|Connection closed by/i,
    'The host of the url was not reached, or stopped answering. Try again later.',
  ],
  [
    /invalid path|unable to (?:checkout|create file)|Filename too long/i,
    'The repository holds a path that is not safe to write.',
  ],
]

/**
 * Explains why git failed, in a sentence; repeats git's own message if it is unknown.
 *
 * @param lines masked, oldest first
 */
function explainGitFailure(lines: readonly string[], fileLimit: number): string {
  const text = lines.join('\n')
  if (/No space left on device/i.test(text)) {
    return "The disk that holds berth's data directory is full. Free space there, then try again."
  }
  // Git's writer of objects is killed without a message when they exceed the limit.
  if (/died of signal 25|File too large|invalid index-pack output/i.test(text)) {
    return `The repository has more than ${formatMebibytes(fileLimit)}, which is the limit.`
  }
  const known = EXPLANATIONS.find(([pattern]) => pattern.test(text))?.[1]
  const message = lines.filter((line) => /^(?:fatal|error|remote|ssh):/i.test(line)).at(-1) ?? lines.at(-1)
  if (known === undefined) return `git could not fetch the repository: ${message ?? 'it said nothing'}`
  return message === undefined ? known : `${known} (git: ${message})`
}

/**
 * Runs a command in a process group that cannot outlive berth: a watcher in the group ends all of it as soon as its
 * standard input closes, which the kernel does however berth ends. `$1` bounds every file that is written.
 */
const LIFELINE = `ulimit -c 0; ulimit -f "$1" 2>/dev/null; shift
exec 3<&0 </dev/null
(exec >/dev/null 2>&1; read -r _ <&3; kill -KILL 0) & watcher=$!
exec 3<&-
"$@"; code=$?
kill -KILL $watcher; wait $watcher 2>/dev/null
exit $code`

/** @bound peer */
const MAX_LINE = 2_000
const MAX_OUTPUT = 4 * 1024 * 1024

/** The exit code of a command that a signal ended. */
const SIGNALLED = 128

/** A command to run. */
interface GitCommand {
  args: readonly string[]
  cwd: string
  env: Record<string, string>
  /** Bytes that any file it writes may have. */
  fileLimit: number
  /** Ends the command and everything it started. */
  signal: AbortSignal
  /** Receives standard error, line by line; of an overwritten line, the last version. */
  onLine(line: string): void
  /** Receives standard output in pieces; an exception ends the command. */
  onOutput?(chunk: Uint8Array): void
}

/**
 * Runs git to its end and resolves to its exit code and standard output, which is empty with `onOutput`.
 *
 * @throws SourceError if git is not installed; the signal's reason; what `onOutput` throws
 */
export async function runGit(command: GitCommand): Promise<{ code: number; output: string }> {
  const { args, cwd, env, signal, onOutput } = command
  signal.throwIfAborted()
  const git = Bun.which('git', { PATH: env.PATH ?? '' })
  if (git === null) {
    throw new SourceError(
      'There is no git on this machine, which repositories are fetched with. Install git, then try again.',
    )
  }
  const blocks = String(Math.ceil(command.fileLimit / 512))
  const lines = new LineReader(command.onLine)
  try {
    const { exitCode, stdout } = await runHelper(['/bin/sh', '-c', LIFELINE, 'sh', blocks, git, ...args], {
      cwd,
      env,
      signal,
      keepsStdinOpen: true,
      outputLimit: MAX_OUTPUT,
      onStderr: (chunk) => lines.push(chunk),
      ...(onOutput === undefined ? {} : { onStdout: onOutput }),
    })
    lines.end()
    // As shells report a signal.
    return { code: exitCode ?? SIGNALLED, output: stdout }
  } catch (error) {
    if (error instanceof HelperError && error.reason === 'output-limit') {
      throw new SourceError('The repository lists more than can be read.')
    }
    throw error
  }
}

/** Cuts pieces of text into lines. */
class LineReader {
  readonly #onLine: (line: string) => void
  readonly #decoder = new TextDecoder()
  #rest = ''

  constructor(onLine: (line: string) => void) {
    this.#onLine = onLine
  }

  push(chunk: Uint8Array): void {
    const lines = (this.#rest + this.#decoder.decode(chunk, { stream: true })).split('\n')
    this.#rest = (lines.pop() ?? '').slice(-MAX_LINE)
    for (const line of lines) emitLine(line, this.#onLine)
  }

  /** Emits the last line, which has no line end. */
  end(): void {
    emitLine(this.#rest, this.#onLine)
  }
}

/** Emits a line: of overwritten progress the last version, without escape sequences, which would reach terminals. */
function emitLine(line: string, onLine: (line: string) => void): void {
  const last = line.replace(/\r+$/, '').split('\r').at(-1) ?? ''
  const plain = last
    .replaceAll('\t', ' ')
    .replaceAll(/\p{Cc}\[[0-9;]*[A-Za-z]|\p{Cc}/gu, '')
    .trimEnd()
  if (plain !== '') onLine(plain.slice(0, MAX_LINE))
}
