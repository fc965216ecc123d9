import { readArguments, readEnvironment } from '../find-processes.ts'

/** The ports of Node.js' and Deno's inspector and of Bun's, if their option names none. */
const INSPECTOR_PORTS = [9229, 6499]

/** Matches the options of Node.js, Deno and Bun that open an inspector, with its address. */
const INSPECT = /^--(?:inspect(?:-brk|-wait|-port)?|debug-port)(?:=(.*))?$/

/** Matches a JVM's debugging agent, with its port. */
const JDWP = /jdwp[=:]\S*?\baddress=(?:[^,\s]*:)?(\d+)/g

/** Matches the beginning of the command lines of debuggers of Go, Ruby and Python, and their options with an address. */
const DEBUGGER =
  /^(?:\S+ )?(?:\S*\/)?(?:dlv|rdbg)(?: |$)| -m (?:debugpy|ptvsd)(?: |$)|\/debugpy\/(?:adapter|launcher)|\/pydevd\.py /
const LISTEN = /^--(?:listen|port)(?:=(.*))?$/

/** Variables with options of Node.js, Bun and JVMs. */
const OPTION_VARIABLES = [
  'NODE_OPTIONS',
  'BUN_OPTIONS',
  'JAVA_TOOL_OPTIONS',
  'JDK_JAVA_OPTIONS',
  '_JAVA_OPTIONS',
]

/**
 * Returns the ports on which a process listens for a debugger, as its command line and its variables say: the
 * inspectors of Node.js, Deno and Bun, debuggers of Python, Go and Ruby, and a JVM's agent. It need not listen there.
 */
export function readDebugPorts(pid: number): number[] {
  const variables = OPTION_VARIABLES.flatMap((name) => readEnvironment(pid, name) ?? [])
  const inspector = readEnvironment(pid, 'BUN_INSPECT')
  return [
    ...debugPortsOf(readArguments(pid)),
    ...variables.flatMap((value) => debugPortsOf(value.split(/\s+/))),
    ...(inspector === null ? [] : inspectorPorts(inspector)),
  ]
}

/** Returns the ports that arguments of a program open for a debugger. */
export function debugPortsOf(args: readonly string[]): number[] {
  // Options of the program that is debugged follow the debugger's own.
  const listenAt = DEBUGGER.test(args.slice(0, 8).join(' ')) ? args.findIndex((arg) => LISTEN.test(arg)) : -1
  return args.flatMap((arg, index) => {
    const inspect = INSPECT.exec(arg)
    if (inspect !== null) return inspectorPorts(inspect[1])
    if (index === listenAt) return portIn(LISTEN.exec(arg)?.[1] ?? args[index + 1])
    return [...arg.matchAll(JDWP)].map(([, port]) => Number(port))
  })
}

/** Returns the port of an inspector's address, or the default ones if it names none. */
function inspectorPorts(address: string | undefined): number[] {
  const named = portIn(address)
  return named.length === 0 ? INSPECTOR_PORTS : named
}

/** Returns the port of `5678`, `:5678`, `localhost:5678`, `[::1]:5678` or `ws://localhost:5678/path`. */
function portIn(address: string | undefined): number[] {
  const port = /^(?:\w+:\/\/)?(?:.*:)?(\d{1,5})(?:[/?].*)?$/.exec(address ?? '')?.[1]
  return port === undefined ? [] : [Number(port)]
}
