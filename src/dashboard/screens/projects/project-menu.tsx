import { useState } from 'preact/hooks'
import { Confirm } from '../../components/dialog.tsx'
import { Menu, type MenuItem } from '../../components/menu.tsx'
import { useDashboard } from '../../dashboard.ts'
import type { Project } from '../../store/store.ts'

/** The actions on a project. */
export function ProjectMenu({ project, onDeleted }: { project: Project; onDeleted?: () => void }) {
  const { api, notices, store } = useDashboard()
  const [isDeleting, setDeleting] = useState(false)
  const { id, name, visibility, init_phase: phase } = project
  const params = { projectId: id }
  const other = visibility === 'public' ? 'private' : 'public'
  const items: MenuItem[] = [
    {
      label: 'Restart the app',
      icon: 'restart',
      run: async () => {
        await api.call('projects.restart', { params })
        notices.done(`The app of ${name} starts again.`, {
          label: 'Show it',
          href: `/dashboard/projects/${id}`,
        })
      },
    },
    ...(phase === null
      ? []
      : [
          {
            label: 'Bring up again',
            icon: 'play' as const,
            run: () => api.call('projects.init', { params }),
          },
        ]),
    {
      label: `Make it ${other}`,
      icon: 'open',
      run: () => api.call('projects.update', { params, body: { visibility: other } }),
    },
    { label: 'Delete', icon: 'trash', isDangerous: true, run: () => setDeleting(true) },
  ]
  return (
    <>
      <Menu label={`Actions on ${name}`} items={items} />
      {isDeleting && (
        <Confirm
          title={`Delete ${name}?`}
          action="Delete the project"
          typed={name}
          onClose={() => setDeleting(false)}
          onConfirm={async () => {
            await api.call('projects.delete', { params })
            store.projects.remove(id)
            onDeleted?.()
            notices.done(`${name} was deleted.`)
          }}
        >
          <p>Its app ends, and its files and variables are gone. They cannot be brought back.</p>
        </Confirm>
      )}
    </>
  )
}
