import NIOCore
import NIOPosix
import NIOSSL

extension Simulator {
    private static let threadsMax = 4

    /// Listens on the options' host and port until the task is cancelled; then stops listening, closes the connections
    /// and returns. `onListening` receives the port. Throws when the address cannot be bound.
    package func run(onListening: @Sendable (Int) async -> Void = { _ in }) async throws {
        let group = MultiThreadedEventLoopGroup(numberOfThreads: min(System.coreCount, Self.threadsMax))
        do {
            try await serve(on: group, onListening: onListening)
        } catch {
            try await group.shutdownGracefully()
            throw error
        }
        try await group.shutdownGracefully()
    }

    private func serve(
        on group: MultiThreadedEventLoopGroup, onListening: @Sendable (Int) async -> Void
    ) async throws {
        let channel = try await ServerBootstrap(group: group)
            .serverChannelOption(.backlog, value: 1024)
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .childChannelOption(.tcpOption(.tcp_nodelay), value: 1)
            .childChannelInitializer { child in
                child.eventLoop.makeCompletedFuture {
                    if let identity = self.identity {
                        try child.pipeline.syncOperations.addHandler(NIOSSLServerHandler(context: identity.context))
                    }
                    try child.pipeline.syncOperations.addHandler(RequestHandler(simulator: self))
                }
            }
            .bind(host: options.host, port: options.port).get()
        try await withTaskCancellationHandler {
            await onListening(channel.localAddress?.port ?? options.port)
            await withTaskGroup(of: Void.self) { tasks in
                for store in [self, neighbour].compactMap({ $0 }) {
                    tasks.addTask { await store.notify(on: group) }
                }
                await tasks.waitForAll()
            }
            try await channel.closeFuture.get()
        } onCancel: {
            channel.close(promise: nil)
        }
    }
}
