/** Returns the environment of this process. What can take an environment as an argument does not call this. */
export const processEnvironment = (): Record<string, string | undefined> => process.env

/**
 * Returns the variables of this process that are set, for all that berth reads. An empty one is not, as for docker, kubectl,
 * Git, npm and XDG: `DOCKER_CERT_PATH= berth serve` unsets it for this command.
 */
export const setVariables = (): Record<string, string | undefined> =>
  Object.fromEntries(Object.entries(processEnvironment()).filter(([, value]) => value))

/**
 * Keeps this process's requests to its own machine off the environment's proxy: berth listens on loopback, which a
 * proxy cannot reach, and the proxy must not see keys.
 */
export function reachLoopbackDirectly(): void {
  for (const name of ['NO_PROXY', 'no_proxy']) {
    process.env[name] = [process.env[name], '127.0.0.1', 'localhost', '.localhost', '::1', '[::1]']
      .filter(Boolean)
      .join(',')
  }
}
