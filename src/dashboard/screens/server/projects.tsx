import { useState } from 'preact/hooks'
import { Button } from '../../components/button.tsx'
import { Empty } from '../../components/empty.tsx'
import { Loaded } from '../../components/loaded.tsx'
import { useDashboard } from '../../dashboard.ts'
import type { Server } from '../../store/store.ts'
import { CreateProject } from '../projects/create-project.tsx'
import { ProjectList } from '../projects/project-list.tsx'

/** The projects of a server. */
export function ServerProjects({ server }: { server: Server }) {
  const { store } = useDashboard()
  const [isCreating, setCreating] = useState(false)
  const create = (
    <Button icon="plus" onClick={() => setCreating(true)}>
      Create a project
    </Button>
  )
  return (
    <>
      <Loaded of={store.projects}>
        {(all) => {
          const projects = all.filter(({ server_id: serverId }) => serverId === server.id)
          if (projects.length === 0)
            return (
              <Empty title="No projects on this server">
                <p>{create}</p>
              </Empty>
            )
          return (
            <>
              <div class="actions above-table">{create}</div>
              <ProjectList projects={projects} isOfServer />
            </>
          )
        }}
      </Loaded>
      {isCreating && <CreateProject serverId={server.id} onClose={() => setCreating(false)} />}
    </>
  )
}
