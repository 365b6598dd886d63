import AppStoreSimulator
import ArgumentParser
import Foundation

/// Flags about the authority with which a simulator signs transactions, renewals and notifications.
struct SimulatorSigningFlags: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "Keeps the authority that signs texts in this file, so that it outlives a restart; made if the file is "
                + "missing.", valueName: "F"))
    var signingAuthority: String?

    @Option(
        help: ArgumentHelp("Where the certificate of the authority that signs texts is written.", valueName: "F"))
    var signingRootFile: String?

    /// Returns the kept authority, or a new one, which is kept where that is asked for.
    func authority() throws -> SigningAuthority {
        guard let path = signingAuthority else { return try SigningAuthority() }
        do {
            if FileManager.default.fileExists(atPath: path) {
                return try SigningAuthority(stored: String(contentsOfFile: path, encoding: .utf8))
            }
            let made = try SigningAuthority()
            let isWritten = FileManager.default.createFile(
                atPath: path, contents: Data(made.stored.utf8), attributes: [.posixPermissions: 0o600])
            guard isWritten else { throw CocoaError(.fileWriteNoPermission) }
            return made
        } catch {
            throw Failure(
                "\(path) cannot be used: \(ExitStatus.sentence(for: error)); give another --signing-authority.")
        }
    }

    /// Writes the certificate for the clients that trust it.
    func writeRoot(of authority: SigningAuthority) throws {
        guard let path = signingRootFile else { return }
        do {
            try authority.rootPEM.write(toFile: path, atomically: true, encoding: .utf8)
        } catch {
            throw Failure(
                "\(path) cannot be written: \(ExitStatus.sentence(for: error)); give another --signing-root-file.")
        }
    }
}
