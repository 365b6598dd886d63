import Foundation
import Logging
import ServiceLifecycle
import UnixSignals

/// Runs services until they end or until SIGTERM or SIGINT asks them to finish what they are doing; a second signal ends
/// the process at once.
///
/// A service that ends by itself ends the group: as a failure, or with `untilDone` as work that is done. When one fails the
/// others finish what they are doing.
func runServices(_ services: [any Service], untilDone: Bool = false, logger: Logger) async throws {
    // A reader of our log that went away must not take the service with it.
    signal(SIGPIPE, SIG_IGN)
    let group = ServiceGroup(
        configuration: ServiceGroupConfiguration(
            services: services.map {
                .init(
                    service: $0, successTerminationBehavior: untilDone ? .gracefullyShutdownGroup : .cancelGroup,
                    failureTerminationBehavior: .gracefullyShutdownGroup)
            }, logger: logger))
    let signals = await UnixSignalsSequence(trapping: .sigterm, .sigint)
    try await withThrowingTaskGroup(of: Void.self) { tasks in
        tasks.addTask {
            var count = 0
            for await signal in signals {
                count += 1
                guard count == 1 else { _exit(128 + (signal == .sigint ? SIGINT : SIGTERM)) }
                logger.info("stopping; once more stops at once")
                await group.triggerGracefulShutdown()
            }
        }
        try await group.run()
        tasks.cancelAll()
    }
}
