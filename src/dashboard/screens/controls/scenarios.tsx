import { useEffect, useState } from 'preact/hooks'
import type { ResponseOf } from '../../../client/client.ts'
import { Section } from '../../components/section.tsx'
import { useDashboard } from '../../dashboard.ts'

type Scenario = ResponseOf<'control.scenarios.list'>['scenarios'][number]

/** The scenarios of the scripted agent, in the order in which they are tried. */
export function Scenarios() {
  const { api, changes, notices } = useDashboard()
  const [scenarios, setScenarios] = useState<readonly Scenario[]>([])
  useEffect(() => {
    const load = (): void =>
      void notices.attempt(async () => setScenarios((await api.call('control.scenarios.list')).scenarios))
    load()
    return changes.subscribe('scenario', load)
  }, [api, changes, notices])
  return (
    <Section title="Scenarios">
      {scenarios.length === 0 ? (
        <p class="quiet">
          None is set: goals are done by their directives.{' '}
          <a href="/docs/guide/scenarios">How scenarios work</a>
        </p>
      ) : (
        <ul class="cards">
          {scenarios.map(({ name, match, steps, source }, index) => (
            <li class="card" key={`${index} ${name}`}>
              <div class="card-main">
                <p>
                  <strong>
                    <bdi>{name}</bdi>
                  </strong>{' '}
                  <code>{typeof match === 'string' ? match : JSON.stringify(match)}</code>
                </p>
                <p class="quiet">
                  {steps.length} steps, from {source}
                </p>
              </div>
            </li>
          ))}
        </ul>
      )}
    </Section>
  )
}
