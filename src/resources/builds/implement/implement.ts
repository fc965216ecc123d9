import type { Agent, Outcome } from '../../../agents/agent.ts'
import { Workbench } from '../../../agents/workbench/workbench.ts'
import type { Beginning } from '../plan/document.ts'
import type { Work } from '../work.ts'
import { BuildTranscript } from './transcript.ts'

/** Dependencies of the implementation. */
interface ImplementParts {
  agent: Agent
  beginning: Beginning
  /** Path of the plan. */
  plan: string
  /** The workspace has changed. */
  changed: () => void
}

/**
 * Has an agent work on a build's goal; what it does stands in the log.
 *
 * @throws as `Agent.work` does; the signal's reason as soon as it fires, also where the agent goes on
 */
export async function implement(
  { row, sandbox, workspace, log, signal, environment }: Work,
  { agent, beginning, plan, changed }: ImplementParts,
): Promise<Outcome> {
  environment()
  log.masks.add(agent.secrets ?? [])
  const transcript = new BuildTranscript(log, 'implement')
  const { masks } = log
  const report: BuildTranscript['report'] = (event) => {
    if (!signal.aborted) transcript.report(event)
  }
  const show: BuildTranscript['show'] = (delta) => {
    if (!signal.aborted) transcript.show(delta)
  }
  const parts = { sandbox, workspace, environment, masks, report, show, signal, changed }
  try {
    const outcome = await orAborted(
      agent.work({
        id: row.id,
        goal: row.goal,
        context: contextText(beginning, sandbox.home, plan),
        workbench: new Workbench(parts),
        sandbox,
        environment,
        ask: null,
        hold: null,
        report,
        show,
        signal,
      }),
      signal,
    )
    return { ...outcome, result: masks.mask(outcome.result) }
  } finally {
    transcript.end()
  }
}

/** What an agent is to know beside the goal. */
function contextText(beginning: Beginning, home: string, plan: string): string {
  const lines = [
    `You work on an app that lies in ${home}, the workspace itself. The plan is in ${plan}.`,
    ...(beginning.kind === 'template'
      ? [
          `It is a fresh copy of the template ${beginning.choice.template.id} (${beginning.choice.template.description}) Its README.md says where things are. Change its files so that it becomes what the goal asks for.`,
        ]
      : [`It was there before: ${beginning.what}. Change it as the goal asks; keep what else it does.`]),
    'There is nobody to ask. When you are done, berth installs its packages, builds it, starts it and publishes it: do not start it to stay, and do not listen on ports.',
    'It must listen on the port in PORT at 127.0.0.1. How it is installed, built and started is found out from its files, or said in berth.json.',
    'Leave the folder projects/ alone: other apps lie in it.',
  ]
  const steps = beginning.kind === 'template' ? beginning.choice.steps : null
  return steps === null ? lines.join('\n') : `${lines.join('\n')}\n\nThe plan:\n\n${steps.trim()}`
}

/** What a promise brings, or the signal's reason where that fires before. */
async function orAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  const { promise: aborted, reject } = Promise.withResolvers<never>()
  const abort = (): void => reject(signal.reason)
  if (signal.aborted) abort()
  signal.addEventListener('abort', abort)
  try {
    return await Promise.race([promise, aborted])
  } finally {
    signal.removeEventListener('abort', abort)
    // Nobody listens to what comes too late.
    promise.catch(() => {})
    aborted.catch(() => {})
  }
}
