import Hummingbird
import HummingbirdCore
import Logging
import NIOCore

/// A connection served on the thread of its event loop, where its requests arrive and its responses leave.
struct OnEventLoop<Connection: ServerChildChannel>: ServerChildChannel {
    let connection: Connection

    func setup(channel: any Channel, logger: Logger) -> EventLoopFuture<Connection.Value> {
        connection.setup(channel: channel, logger: logger)
    }

    func handle(value: Connection.Value, logger: Logger) async {
        await withTaskExecutorPreference(EventLoopExecutor(value.channel.eventLoop)) {
            await connection.handle(value: value, logger: logger)
        }
    }
}
