import Foundation
import NIOSSL

/// The reason a TLS connection failed. Its sentences name no host, because they are stored and shown.
enum TLSFailure: Equatable {
    /// The store's certificate is valid but belongs to another host.
    case wrongName
    /// The certificate could not be verified; the reason is unknown.
    case unverified
    /// A certificate has expired: the store's own, or one above it.
    case expired(since: Date, isStores: Bool)
    /// A certificate is not valid yet.
    case notYetValid(until: Date, isStores: Bool)
    /// No authority trusted here vouches for the certificate.
    case unknownAuthority
    /// The handshake failed before it reached the certificates.
    case noHandshake

    /// Classifies an error; nil if it is not a TLS error.
    init?(_ error: any Error) {
        if let error = error as? NIOSSLExtraError {
            self = error == .failedToValidateHostname ? .wrongName : .noHandshake
        } else if case .handshakeFailed(.sslError(let stack))? = error as? NIOSSLError {
            // BoringSSL has a code for this; the package exposes it only as text.
            let isUnverified = stack.contains { $0.description.contains("CERTIFICATE_VERIFY_FAILED") }
            self = isUnverified ? .unverified : .noHandshake
        } else if String(reflecting: type(of: error)).contains("SSL") || CallFailure.name(of: error).contains("SSL") {
            self = .noHandshake
        } else {
            return nil
        }
    }

    /// Determines the fault of certificates that failed verification.
    ///
    /// - Parameter chain: as the server sent it, its own certificate first.
    init(in chain: [NIOSSLCertificate], at now: Date) {
        for (place, certificate) in chain.enumerated() {
            let begin = Date(timeIntervalSince1970: TimeInterval(certificate.notValidBefore))
            let end = Date(timeIntervalSince1970: TimeInterval(certificate.notValidAfter))
            if end < now {
                self = .expired(since: end, isStores: place == 0)
                return
            }
            if begin > now {
                self = .notYetValid(until: begin, isStores: place == 0)
                return
            }
        }
        self = .unknownAuthority
    }

    /// The fault and its remedy.
    var sentence: String {
        switch self {
        case .wrongName:
            "The store's certificate is for another name than the configured address has; check the address and what "
                + "answers there."
        case .unverified: "The store's certificate could not be verified; check the root certificates and the clock."
        case .expired(let end, let isStores):
            "\(Self.whose(isStores)) expired on \(end.ISO8601Format()); check the clock, else the store must renew it."
        case .notYetValid(let begin, let isStores):
            "\(Self.whose(isStores)) is not valid before \(begin.ISO8601Format()); check the clock."
        case .unknownAuthority:
            "The store's certificate is signed by an authority that is not trusted here; check the root certificates and "
                + "whether something in between answers in the store's place."
        case .noHandshake:
            "The TLS handshake with the store failed; check that the configured address speaks HTTPS, TLS 1.2 or newer."
        }
    }

    private static func whose(_ isStores: Bool) -> String {
        isStores ? "The store's certificate" : "A certificate above the store's"
    }
}
