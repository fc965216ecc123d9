import { join } from 'node:path/posix'
import { type CommandOwner, PACKAGE_VARIABLES, type Sandbox } from '../compute/sandbox.ts'
import type { Workspace } from '../compute/workspace.ts'
import { findAppDirectory, workspaceTree } from './app-directory.ts'
import type { AppLog } from './app-runtime/log/log.ts'
import {
  AppError,
  type AppPlan,
  buildVariables,
  describePlan,
  inApp,
  runVariables,
} from './app-runtime/plan.ts'
import type { Packages } from './registries/packages.ts'

/** The location and the log of an app to prepare. */
export interface AppWorkspace {
  /** What its commands belong to. */
  owner: CommandOwner
  serverId: string
  sandbox: Sandbox
  workspace: Workspace
  /** Relative to the workspace; empty for the workspace itself. */
  directory: string
  /** Whether somebody has said that it answers no requests. */
  isWorker?: boolean
  /** The app's own directory, relative to that one, if its author has named one. */
  within?: string
  log: AppLog
  /** Aborts the step under way. */
  signal?: AbortSignal
}

/** Variables of an app's commands. */
export type AppEnvironment = Readonly<Record<string, string>>

/** Detects how an app is started, installs its packages, builds and releases it. */
export class Preparation {
  readonly #packages: Packages

  /**
   * @param packages gives access to the packages that servers share
   */
  constructor(packages: Packages) {
    this.#packages = packages
  }

  /**
   * Detects how the app in a directory is installed, built and started, and says in its log what it is.
   *
   * @throws AppError, NoAppFound
   */
  async plan(location: AppWorkspace): Promise<AppPlan> {
    const plan = await this.detect(location)
    for (const line of describePlan(plan)) location.log.append('berth', line)
    return plan
  }

  /** Does the same without a line in the log. @throws AppError, NoAppFound */
  async detect(location: AppWorkspace): Promise<AppPlan> {
    const { workspace, directory, within = '', sandbox, isWorker = false } = location
    const [{ planApp }, { SandboxMachine }] = await Promise.all([
      import('./detection/detect.ts'),
      import('./detection/sandbox-machine.ts'),
    ])
    const { path, problem } = await findAppDirectory(workspaceTree(workspace, directory), within)
    if (problem !== null) throw new AppError(problem)
    return planApp({ workspace, directory, within: path, machine: new SandboxMachine(sandbox), isWorker })
  }

  /**
   * Installs the app's packages.
   *
   * @throws AppError
   */
  async install(location: AppWorkspace, plan: AppPlan, environment: AppEnvironment): Promise<void> {
    const { log } = location
    for (const line of await this.#bypasses(location, plan)) log.append('berth', line)
    if (plan.install === null) return
    try {
      const store = /\bpnpm\b/.test(plan.install) ? pnpmStore(location.sandbox) : {}
      await this.#run(location, 'install', plan, { ...store, ...environment })
    } catch (error) {
      for (const problem of this.#packages.takeProblems(location.serverId)) log.append('install', problem)
      throw error
    }
  }

  /** Returns what the commands that fetch packages download past the relay, each a sentence. */
  async #bypasses(location: AppWorkspace, plan: AppPlan): Promise<string[]> {
    const { serverId, sandbox, workspace, directory } = location
    const { bypassesOf, readerOf } = await import('./registries/bypass.ts')
    const environment = this.#packages.commandEnvironment(serverId, sandbox)
    return bypassesOf({
      command: [plan.install, plan.build].filter((one) => one !== null).join('\n'),
      read: readerOf(workspace, join(directory, plan.directory)),
      isOfBerth: (program) => isOwnTool(sandbox, program),
      mavenMirrorOf: environment[PACKAGE_VARIABLES.mavenMirrorOf] ?? '',
    })
  }

  /** Builds the app, with the variables that it has when it runs. @throws AppError */
  async build(location: AppWorkspace, plan: AppPlan, environment: AppEnvironment): Promise<void> {
    if (plan.build !== null) await this.#run(location, 'build', plan, buildVariables(plan, environment))
  }

  /**
   * Installs and builds an app.
   *
   * @param environment called as each step begins, and returns its variables
   * @throws AppError
   */
  async make(
    location: AppWorkspace,
    plan: AppPlan,
    environment: (step: 'install' | 'build') => AppEnvironment,
  ): Promise<void> {
    await this.install(location, plan, environment('install'))
    await this.build(location, plan, environment('build'))
  }

  /** Runs what has to succeed before a version starts. @throws AppError */
  async release(location: AppWorkspace, plan: AppPlan, environment: AppEnvironment): Promise<void> {
    if (plan.release !== null) await this.#run(location, 'release', plan, runVariables(plan, environment))
  }

  async #run(
    location: AppWorkspace,
    source: 'install' | 'build' | 'release',
    plan: AppPlan,
    environment: AppEnvironment,
  ): Promise<void> {
    const { owner, serverId, sandbox, workspace, directory, log, signal } = location
    const { runStep } = await import('./app-runtime/step.ts')
    const packages = await this.#packages.environment(serverId, {
      paths: sandbox,
      workspace,
      directory: join(directory, plan.directory),
    })
    const { [PACKAGE_VARIABLES.url]: mirror } = packages
    if (mirror !== undefined) sandbox.forward(Number(new URL(mirror).port))
    const shown = plan[source] ?? ''
    const env = { ...packages, ...plan.variables, ...environment }
    const place = { owner, sandbox, workspace, cwd: directory, directory: plan.directory }
    const step = { ...place, command: inApp(plan, shown), shown, env, log, source }
    await runStep({ ...step, ...(signal ? { signal } : {}) })
  }
}

/** Reports whether a program is one of berth's tools, since no other of that name is on PATH. */
async function isOwnTool(sandbox: Sandbox, program: string): Promise<boolean> {
  const decoder = new TextDecoder()
  let path = ''
  const { exit } = sandbox.exec({
    command: `command -v ${program}`,
    timeoutMs: 10_000,
    onOutput(_, data) {
      path += decoder.decode(data, { stream: true })
    },
  })
  await exit
  return path.startsWith(`${sandbox.tools}/`)
}

/** Returns where pnpm up to 10 keeps packages; npm warns of settings that it does not know. */
const pnpmStore = ({ caches }: Sandbox): AppEnvironment => ({ npm_config_store_dir: `${caches}/pnpm` })
