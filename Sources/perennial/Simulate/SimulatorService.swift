import AppStoreSimulator
import Logging
import ServiceLifecycle

/// The simulator as a service that a signal stops.
struct SimulatorService: Service {
    let simulator: Simulator
    /// The path of the certificate of its authority; nil without TLS.
    let rootFile: String?
    let logger: Logger

    func run() async throws {
        let scheme = simulator.identity == nil ? "http" : "https"
        try await cancelWhenGracefulShutdown {
            try await simulator.run { port in
                logger.info("a pretend App Store listens on \(scheme)://\(simulator.options.host):\(port)")
                if let rootFile { logger.info("the certificate of its authority is in \(rootFile)") }
            }
        }
    }
}
