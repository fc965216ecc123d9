import { afterAll, beforeAll, expect, test } from 'bun:test'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestBerth, testBerth } from '../../support/berth.ts'
import { type HeaderProxy, headerProxy } from './header-proxy.ts'

/** Why a scenario cannot pass on a server whose tools, resources and prompts are its own. */
const FIXTURE_TOOL = 'calls a tool that the suite itself prescribes, such as test_simple_text'
const FIXTURE_RESOURCE = 'reads a resource that the suite itself prescribes, such as test://static-text'
const FIXTURE_PROMPT = 'asks for a prompt that the suite itself prescribes'
const NO_INPUT = 'berth asks a client for nothing during a call; the scenario needs a tool that does'
const NO_LOGGING = 'berth sends no log messages, and does not say that it could'
const NO_SUBSCRIPTIONS = 'resources of berth cannot be subscribed to, and it does not say that they could'

/** By scenario. Each is run all the same: one that passes meanwhile is to be taken out here. */
const NOT_APPLICABLE: Readonly<Record<string, string>> = {
  'tools-call-simple-text': FIXTURE_TOOL,
  'tools-call-image': FIXTURE_TOOL,
  'tools-call-audio': FIXTURE_TOOL,
  'tools-call-embedded-resource': FIXTURE_TOOL,
  'tools-call-mixed-content': FIXTURE_TOOL,
  'tools-call-with-progress': `${FIXTURE_TOOL}; clients.test.ts keeps progress`,
  'tools-call-error': `${FIXTURE_TOOL}; clients.test.ts keeps errors`,
  'json-schema-2020-12': `${FIXTURE_TOOL}; tools.test.ts keeps schemas`,
  'http-custom-header-server-validation': 'no tool of berth takes an argument from a header',
  'resources-read-text': FIXTURE_RESOURCE,
  'resources-read-binary': FIXTURE_RESOURCE,
  'resources-templates-read': FIXTURE_RESOURCE,
  'prompts-get-simple': FIXTURE_PROMPT,
  'prompts-get-with-args': FIXTURE_PROMPT,
  'prompts-get-embedded-resource': FIXTURE_PROMPT,
  'prompts-get-with-image': FIXTURE_PROMPT,
  'completion-complete': `${FIXTURE_PROMPT} to be completed; clients.test.ts keeps completion`,
  'tools-call-with-logging': NO_LOGGING,
  'logging-set-level': NO_LOGGING,
  'resources-subscribe': NO_SUBSCRIPTIONS,
  'resources-unsubscribe': NO_SUBSCRIPTIONS,
  'tools-call-sampling': NO_INPUT,
  'tools-call-elicitation': NO_INPUT,
  'elicitation-sep1034-defaults': NO_INPUT,
  'elicitation-sep1330-enums': NO_INPUT,
  'input-required-result-basic-elicitation': NO_INPUT,
  'input-required-result-basic-sampling': NO_INPUT,
  'input-required-result-basic-list-roots': NO_INPUT,
  'input-required-result-request-state': NO_INPUT,
  'input-required-result-multiple-input-requests': NO_INPUT,
  'input-required-result-multi-round': NO_INPUT,
  'input-required-result-non-tool-request': NO_INPUT,
  'input-required-result-result-type': NO_INPUT,
  'input-required-result-tampered-state': NO_INPUT,
  'input-required-result-capability-check': NO_INPUT,
}

/** Checks, in scenarios that otherwise pass, that need a prescribed tool. */
const NOT_APPLICABLE_CHECKS: Readonly<Record<string, readonly string[]>> = {
  'server-stateless': [
    'sep-2575-server-rejects-undeclared-capability',
    'sep-2575-missing-capability-http-400',
    'sep-2575-http-server-no-independent-requests-on-stream',
    'sep-2575-server-no-log-without-loglevel',
  ],
}

/** What passes, by version of the protocol. */
const PASSING: Readonly<Record<string, readonly string[]>> = {
  '2026-07-28': [
    'caching',
    'dns-rebinding-protection',
    'http-header-validation',
    'input-required-result-ignore-extra-params',
    'input-required-result-missing-input-response',
    'input-required-result-unsupported-methods',
    'input-required-result-validate-input',
    'prompts-list',
    'resources-list',
    'sep-2164-resource-not-found',
    'server-sse-multiple-streams',
    'server-stateless',
    'tools-list',
  ],
  '2025-11-25': [
    'dns-rebinding-protection',
    'ping',
    'prompts-list',
    'resources-list',
    'server-initialize',
    'server-session-lifecycle',
    'server-sse-multiple-streams',
    'server-sse-polling',
    'tools-list',
  ],
  '2025-06-18': [
    'ping',
    'prompts-list',
    'resources-list',
    'server-initialize',
    'server-session-lifecycle',
    'tools-list',
  ],
}

const suite = join(import.meta.dir, '../../../node_modules/@modelcontextprotocol/conformance/dist/index.js')

let berth: TestBerth
let proxy: HeaderProxy
beforeAll(async () => {
  berth = await testBerth()
  // Something to list.
  const server = await berth.server()
  await berth.call('PUT', `/servers/${server}/files`, { path: 'a.txt', content: 'x' })
  // The suite sends no credential.
  proxy = await headerProxy(berth.info.base_url, berth.info.api_key)
})
afterAll(async () => {
  await proxy[Symbol.asyncDispose]()
  await berth[Symbol.asyncDispose]()
})

/** Runs every scenario of a version: scenario → ids of the checks that failed. */
async function run(version: string): Promise<Map<string, string[]>> {
  const folder = mkdtempSync(join(tmpdir(), 'berth-conformance-'))
  try {
    const options = ['--suite', 'all', '--spec-version', version, '--output-dir', folder]
    const child = Bun.spawn(
      [process.execPath, '--bun', suite, 'server', '--url', `${proxy.url}/mcp`, ...options],
      { stdin: 'ignore', stdout: 'ignore', stderr: 'ignore' },
    )
    await child.exited
    const files = readdirSync(folder, { recursive: true, encoding: 'utf8' })
    const results = files.filter((path) => path.endsWith('checks.json'))
    return new Map(
      results.map((path) => {
        const [, scenario = path] = /server-(.+?)-\d{4}-\d\d-\d\dT/.exec(path) ?? []
        const checks: { id: string; status: string }[] = JSON.parse(readFileSync(join(folder, path), 'utf8'))
        return [scenario, checks.filter(({ status }) => status === 'FAILURE').map(({ id }) => id)]
      }),
    )
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

test.each(Object.keys(PASSING))(
  'every applicable scenario of the public suite passes, protocol %s',
  async (version) => {
    const results = await run(version)
    const failed = [...results].filter(
      ([scenario, checks]) => checks.join() !== (NOT_APPLICABLE_CHECKS[scenario] ?? []).join(),
    )
    const passed = [...results.keys()].filter((name) => !failed.some(([other]) => other === name))
    expect(failed.filter(([name]) => !(name in NOT_APPLICABLE))).toEqual([])
    expect(passed.sort()).toEqual([...(PASSING[version] ?? [])])
  },
)
