import type { Agent, Outcome } from '../../../agents/agents.ts'
import { Workbench } from '../../../agents/workbench/workbench.ts'
import { orAborted } from '../../../runtime/wait.ts'
import type { BuildContext } from '../context.ts'
import type { StartingPoint } from '../plan/document.ts'
import { BuildTranscript } from './transcript.ts'

/** Dependencies of the implementation. */
interface ImplementDependencies {
  agent: Agent
  startingPoint: StartingPoint
  /** Path of the plan. */
  planPath: string
  /** Called when the agent has changed the workspace. */
  onChange: () => void
}

/**
 * Runs the agent on a build's goal. Its events go to the build's log.
 *
 * @throws as `Agent.work` does; the signal's reason as soon as it fires, even if the agent continues
 */
export async function implement(
  { row, sandbox, workspace, log, signal, environment }: BuildContext,
  { agent, startingPoint, planPath, onChange }: ImplementDependencies,
): Promise<Outcome> {
  environment()
  log.masks.add(agent.secrets ?? [])
  const transcript = new BuildTranscript(log, 'implement')
  const { masks } = log
  const report: BuildTranscript['report'] = (event) => {
    if (!signal.aborted) transcript.report(event)
  }
  const addDelta: BuildTranscript['addDelta'] = (delta) => {
    if (!signal.aborted) transcript.addDelta(delta)
  }
  const owner = { kind: 'build', id: row.id } as const
  const parts = { owner, sandbox, workspace, environment, masks, report, addDelta, signal, onChange }
  try {
    const outcome = await orAborted(
      agent.work({
        id: row.id,
        accountId: row.accountId,
        goal: row.goal,
        context: contextText(startingPoint, sandbox.home, planPath),
        workbench: new Workbench(parts),
        sandbox,
        owner,
        environment,
        ask: null,
        hold: null,
        report,
        addDelta,
        signal,
      }),
      signal,
    )
    return { ...outcome, result: masks.mask(outcome.result) }
  } finally {
    transcript.end()
  }
}

/** Returns the instructions of the agent besides the goal. */
function contextText(startingPoint: StartingPoint, home: string, plan: string): string {
  const lines = [
    `You work on an app that lies in ${home}, the workspace itself. The plan is in ${plan}.`,
    ...(startingPoint.kind === 'template'
      ? [
          `It is a fresh copy of the template ${startingPoint.choice.template.id} (${startingPoint.choice.template.description}) Its README.md says where things are. Change its files so that it becomes what the goal asks for.`,
        ]
      : [
          `It was there before: ${startingPoint.description}. Change it as the goal asks; keep what else it does.`,
        ]),
    'There is nobody to ask. When you are done, berth installs its packages, builds it, starts it and publishes it: do not start it to stay, and do not listen on ports.',
    'It must listen on the port in PORT at 127.0.0.1. How it is installed, built and started is found out from its files, or said in berth.json.',
    'Leave the directory projects/ alone: other apps lie in it.',
  ]
  const steps = startingPoint.kind === 'template' ? startingPoint.choice.steps : null
  return steps === null ? lines.join('\n') : `${lines.join('\n')}\n\nThe plan:\n\n${steps.trim()}`
}
