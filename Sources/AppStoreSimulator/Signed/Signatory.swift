import Foundation
import Synchronization

/// The signing authority of a store, made when the first text is signed, so that stores without signed texts start fast.
package final class Signatory: Sendable {
    private let authority: Mutex<SigningAuthority?>

    /// Creates a signatory with an authority that was kept, or one whose authority is made later.
    package init(_ authority: SigningAuthority? = nil) {
        self.authority = Mutex(authority)
    }

    /// Returns the authority; a new one has certificates that are valid around `now`.
    func authority(at now: StoreTime) throws -> SigningAuthority {
        try authority.withLock { authority in
            if let authority { return authority }
            let made = try SigningAuthority(at: Date(timeIntervalSince1970: Double(now.milliseconds) / 1000))
            authority = made
            return made
        }
    }
}

extension Simulator {
    /// Returns the authority that signs the store's texts.
    package func signingAuthority() throws -> SigningAuthority { try signatory.authority(at: clock.now) }

    /// Answers `GET /simulator/signing-root`.
    func signingRoot() throws -> SimulatorReply {
        SimulatorReply(
            headers: [("Content-Type", "application/x-pem-file")], body: Array(try signingAuthority().rootPEM.utf8))
    }
}
