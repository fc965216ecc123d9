import { expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { run, temporaryFolder } from './command.ts'

/** Starts a berth on an engine at which nothing listens; returns what it says. */
async function refusal(env: Record<string, string>, cwd: string): Promise<string> {
  const args = ['serve', '--ephemeral', '--port', '0', '--compute', 'docker']
  const { exitCode, stderr } = await run(args, { cwd, env })
  expect(exitCode).toBe(1)
  return stderr
}

test('an empty variable is not set: of Docker, of Kubernetes, of berth', async () => {
  using here = temporaryFolder()
  const nowhere = { DOCKER_HOST: 'tcp://127.0.0.1:1' }
  expect(await refusal({ ...nowhere, DOCKER_CERT_PATH: '' }, here.path)).toContain('nothing listens there')
  // It would be the working directory.
  expect(await refusal({ ...nowhere, BERTH_CONFIG: '' }, here.path)).toContain('nothing listens there')
  writeFileSync(join(here.path, 'config.json'), JSON.stringify({ currentContext: 'of-a-file' }))
  const config = { DOCKER_CONFIG: here.path, DOCKER_CONTEXT: '', DOCKER_HOST: '' }
  expect(await refusal(config, here.path)).toContain('context "of-a-file" has no address')
  const cluster = ['serve', '--ephemeral', '--port', '0', '--compute', 'kubernetes']
  const env = { KUBECONFIG: '', KUBERNETES_SERVICE_HOST: '', HOME: here.path }
  expect((await run(cluster, { cwd: here.path, env })).stderr).toContain(
    'No Kubernetes cluster is configured',
  )
}, 60_000)

test('a command of berth run gets the empty ones as they are', async () => {
  using here = temporaryFolder()
  const args = ['run', '--', 'sh', '-c', `echo "\${EMPTY-unset}."`]
  const { stdout } = await run(args, { cwd: here.path, env: { EMPTY: '' } })
  expect(stdout).toBe('.\n')
}, 60_000)
