import { useState } from 'preact/hooks'
import { Button } from '../../components/button.tsx'
import { Empty } from '../../components/empty.tsx'
import { Loaded } from '../../components/loaded.tsx'
import { Page } from '../../components/page.tsx'
import { Search } from '../../components/search.tsx'
import { useDashboard } from '../../dashboard.ts'
import { CreateProject } from './create-project.tsx'
import { ProjectList } from './project-list.tsx'

/** All projects of the account. */
export default function Projects() {
  const { store } = useDashboard()
  const [isCreating, setCreating] = useState(false)
  const create = (
    <Button isNew look="primary" icon="plus" onClick={() => setCreating(true)}>
      Create a project
    </Button>
  )
  return (
    <Page
      title="Projects"
      isFull
      actions={
        store.projects.list.value.length > 0 && (
          <>
            <Search label="Search projects" />
            {create}
          </>
        )
      }
    >
      <Loaded of={store.projects}>
        {(projects) =>
          projects.length === 0 ? (
            <Empty title="No projects yet">
              <p>
                A project is an app with a URL: from a template, a repository, or a directory that you send.
              </p>
              <p>{create}</p>
              <p class="quiet">
                <code>berth projects push</code> sends the directory that it is called in.
              </p>
            </Empty>
          ) : (
            <ProjectList projects={projects} />
          )
        }
      </Loaded>
      {isCreating && <CreateProject onClose={() => setCreating(false)} />}
    </Page>
  )
}
