import { CommandLines } from '../../components/command-lines.tsx'
import { CopyButton } from '../../components/copy.tsx'
import { JsonView } from '../../components/json-view.tsx'
import { Loaded } from '../../components/loaded.tsx'
import type { Subject } from './subject.ts'

/** The object on the screen as the API gives it, and the lines that do the same. */
export function ObjectPart({ subject }: { subject: Subject }) {
  return (
    <div class="drawer-body">
      <Loaded of={subject.source}>
        {() =>
          subject.value === undefined ? (
            <p class="quiet">
              There is no {subject.kind} <code>{subject.id}</code> any more.
            </p>
          ) : (
            <div class="drawer-object">
              <div class="drawer-json">
                <CopyButton text={() => JSON.stringify(subject.value, null, 2)} label="Copy the object" />
                <JsonView value={subject.value} />
              </div>
              <CommandLines berth={subject.berth} method="GET" path={subject.path} isOpen />
            </div>
          )
        }
      </Loaded>
    </div>
  )
}
