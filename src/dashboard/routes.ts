import type { Route } from './routing/route.ts'

/** Every screen, by its path. A screen is a directory of `screens/`, loaded when it is first shown. */
export const ROUTES: readonly Route[] = [
  {
    path: '/',
    title: 'Servers',
    load: () => import('./screens/servers/servers.tsx'),
  },
  {
    path: '/dashboard/servers',
    title: 'Servers',
    load: () => import('./screens/servers/servers.tsx'),
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
]
