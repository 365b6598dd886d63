import AppStoreSimulator
import ArgumentParser
import Foundation

/// Flags of a simulator that serves HTTPS.
struct SimulatorTLSFlags: ParsableArguments {
    @Flag(help: "Speak HTTPS, with a certificate authority made at the start.")
    var tls = false

    @Option(
        help: ArgumentHelp(
            "With --tls: where the certificates of this authority and of the one that signs texts are written; a file "
                + "of the temporary folder unless given.",
            valueName: "F"))
    var tlsRootFile: String?

    @Option(
        help: ArgumentHelp(
            "With --tls: a further host name or address of this machine; may be repeated.", valueName: "name"))
    var tlsName: [String] = []

    @Option(
        help: ArgumentHelp(
            "With --tls: \(StoreCertificate.allCases.map(\.rawValue).joined(separator: ", ")).", valueName: "kind"))
    var tlsCertificate: StoreCertificate?

    func validate() throws {
        guard tls || (tlsRootFile == nil && tlsName.isEmpty && tlsCertificate == nil) else {
            throw ValidationError("--tls-root-file, --tls-name and --tls-certificate go with --tls.")
        }
    }

    /// Returns the TLS identity of the store; nil without --tls.
    func identity(ofStoreAt host: String) throws -> StoreIdentity? {
        guard tls else { return nil }
        return try StoreIdentity(names: StoreIdentity.localNames + [host] + tlsName, shows: tlsCertificate ?? .good)
    }

    /// Writes the certificates of both authorities for the clients that trust them, and returns the path.
    func writeRoots(of identity: StoreIdentity, and authority: SigningAuthority) throws -> String {
        let folder = FileManager.default.temporaryDirectory
        let path =
            tlsRootFile
            ?? folder.appending(path: "perennial-simulator-\(ProcessInfo.processInfo.processIdentifier).pem").path
        do {
            try (identity.rootPEM + authority.rootPEM).write(toFile: path, atomically: true, encoding: .utf8)
        } catch {
            throw Failure(
                "\(path) cannot be written: \(ExitStatus.sentence(for: error)); give another --tls-root-file.")
        }
        return path
    }
}

extension StoreCertificate: ExpressibleByArgument {}
