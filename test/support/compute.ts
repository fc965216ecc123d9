/**
 * What runs the servers of this run of tests, in place of this machine: `BERTH_TEST_COMPUTE=docker`, with the engine at
 * `BERTH_TEST_ENGINE`, such as `unix:///run/docker.sock`. The engine needs the image of this version.
 */
const compute = process.env.BERTH_TEST_COMPUTE ?? ''
const engine = process.env.BERTH_TEST_ENGINE ?? ''

/** Whether servers are processes of this machine, which a test may look for. */
export const isLocalCompute = compute === ''

/** The variables by which a berth of this run chooses what runs servers. */
export const computeEnvironment: Readonly<Record<string, string>> = {
  ...(compute === '' ? {} : { BERTH_COMPUTE: compute }),
  ...(engine === '' ? {} : { BERTH_ENGINE: engine }),
}

/** Returns flags without the isolation, which is of this machine, if servers are elsewhere. */
export function forCompute(args: readonly string[]): string[] {
  if (isLocalCompute) return [...args]
  return args.filter((arg, index) => arg !== '--isolation' && args[index - 1] !== '--isolation')
}
