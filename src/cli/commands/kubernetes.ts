import { VERSION } from '../../runtime/version.ts'
import { action, type Noun } from '../command.ts'
import { textOption } from '../options.ts'

/** `berth kubernetes` */
export const kubernetesNoun: Noun = {
  name: 'kubernetes',
  summary: 'run berth in a cluster',
  description: 'Helps to run berth itself in a Kubernetes cluster, with its servers as pods.',
  commands: [
    action({
      usage: 'manifest',
      summary: 'print what runs berth in a cluster, for kubectl',
      description:
        'Prints the objects that run berth in a cluster: two namespaces, its rights in the second alone, a claim for its data, a Deployment and a Service.',
      access: 'none',
      options: {
        image: textOption('IMAGE', 'the image of berth, in a registry that the cluster reaches'),
        serverImage: textOption('IMAGE', 'the image of servers'),
        namespace: textOption('NAME', 'the namespace of berth'),
        servers: textOption('NAME', 'the namespace of the servers'),
      },
      help: `
    kubectl create namespace berth
    kubectl -n berth create secret generic berth \\
      --from-literal=master-key=$(openssl rand -base64 32)
    berth kubernetes manifest --image REGISTRY/berth:${VERSION} | kubectl apply -f -
    kubectl -n berth logs deployment/berth      # the first key
    kubectl -n berth port-forward service/berth 4747
`,
      async run({ session: { context }, options }) {
        const { clusterManifest } = await import('../kubernetes-manifest.ts')
        const {
          image = `berth:${VERSION}`,
          serverImage = `berth-server:${VERSION}`,
          namespace = 'berth',
          servers = 'berth-servers',
        } = options
        await context.stdout.write(clusterManifest({ image, serverImage, namespace, servers }))
        return 0
      },
    }),
  ],
}
