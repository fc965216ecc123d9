import type { ScreenRoute } from './router.ts'

/** Every screen, by its path. A screen is a file or a directory of `screens/`, loaded when it is first shown. */
export const ROUTES: readonly ScreenRoute[] = [
  {
    path: '/',
    title: 'Timeline',
    load: () => import('./screens/timeline/timeline.tsx'),
  },
  {
    path: '/dashboard/requests',
    title: 'Requests',
    isAdmin: true,
    load: () => import('./screens/requests/requests.tsx'),
  },
  {
    path: '/dashboard/servers',
    title: 'Servers',
    load: () => import('./screens/servers.tsx'),
  },
  {
    path: '/dashboard/servers/:serverId',
    title: 'Server',
    load: () => import('./screens/server/server.tsx'),
  },
  {
    path: '/dashboard/servers/:serverId/:tab',
    title: 'Server',
    load: () => import('./screens/server/server.tsx'),
  },
  {
    path: '/dashboard/servers/:serverId/executions/:executionId',
    title: 'Execution',
    load: () => import('./screens/execution.tsx'),
  },
  { path: '/dashboard/projects', title: 'Projects', load: () => import('./screens/projects.tsx') },
  {
    path: '/dashboard/projects/:projectId',
    title: 'Project',
    load: () => import('./screens/project/project.tsx'),
  },
  {
    path: '/dashboard/projects/:projectId/:tab',
    title: 'Project',
    load: () => import('./screens/project/project.tsx'),
  },
  { path: '/dashboard/tasks', title: 'Tasks', load: () => import('./screens/tasks.tsx') },
  { path: '/dashboard/tasks/:taskId', title: 'Task', load: () => import('./screens/task/task.tsx') },
  { path: '/dashboard/builds', title: 'Builds', load: () => import('./screens/builds.tsx') },
  { path: '/dashboard/builds/:buildId', title: 'Build', load: () => import('./screens/build.tsx') },
  {
    path: '/dashboard/builds/:buildId/:tab',
    title: 'Build',
    load: () => import('./screens/build.tsx'),
  },
  { path: '/dashboard/access', title: 'Access', load: () => import('./screens/access.tsx') },
  { path: '/dashboard/usage', title: 'Usage', load: () => import('./screens/usage.tsx') },
  { path: '/dashboard/mcp', title: 'MCP tools', load: () => import('./screens/mcp/mcp.tsx') },
  { path: '/dashboard/webhooks', title: 'Webhooks', load: () => import('./screens/webhooks/webhooks.tsx') },
  {
    path: '/dashboard/inboxes',
    title: 'Inboxes',
    isAdmin: true,
    load: () => import('./screens/inboxes.tsx'),
  },
  {
    path: '/dashboard/controls',
    title: 'Test controls',
    isAdmin: true,
    load: () => import('./screens/controls/controls.tsx'),
  },
  {
    path: '/dashboard/controls/:tab',
    title: 'Test controls',
    isAdmin: true,
    load: () => import('./screens/controls/controls.tsx'),
  },
]
