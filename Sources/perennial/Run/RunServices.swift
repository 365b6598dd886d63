import Foundation
import Logging
import ServiceLifecycle
import UnixSignals

/// The longest time that services may take to finish their work, in seconds. What is not finished then would not be, as
/// where PostgreSQL's machine vanished in the middle of a statement; a claim is taken over within one lease.
private let stopSecondsMax = 30

/// Runs services until they end, or until SIGTERM or SIGINT asks them to finish their work; a second signal, or half a
/// minute, ends the process.
///
/// A service that ends by itself ends the group: as a failure, or as completed work with `untilDone`. When one fails,
/// the others finish their work.
func runServices(_ services: [any Service], untilDone: Bool = false, logger: Logger) async throws {
    // The service must survive when the reader of its log goes away.
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
            await withDiscardingTaskGroup { limit in
                var count = 0
                for await signal in signals {
                    count += 1
                    guard count == 1 else { _exit(128 + (signal == .sigint ? SIGINT : SIGTERM)) }
                    logger.info("stopping; once more stops at once")
                    limit.addTask {
                        await pause(seconds: stopSecondsMax)
                        guard !Task.isCancelled else { return }
                        logger.error(
                            "not everything was finished within \(stopSecondsMax) seconds; ending all the same")
                        _exit(EXIT_FAILURE)
                    }
                    await group.triggerGracefulShutdown()
                }
            }
        }
        try await group.run()
        tasks.cancelAll()
    }
}
