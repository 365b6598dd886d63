import Foundation
import NIOSSL

/// Why no call went through a TLS connection: sentences that name no host, for they are stored and shown.
enum TLSTrouble: Equatable {
    /// The store's certificate is in order, but another host's.
    case wrongName
    /// The certificate was not believed; why is not known.
    case unverified
    /// A certificate's time has passed; whether it is the store's own or one above it.
    case expired(since: Date, isStores: Bool)
    /// A certificate's time has not begun.
    case notYetValid(until: Date, isStores: Bool)
    /// No authority that is trusted here vouches for the certificate.
    case unknownAuthority
    /// The two did not come to the point of a certificate.
    case noHandshake

    /// Nil when the error is none of TLS.
    init?(_ error: any Error) {
        if let error = error as? NIOSSLExtraError {
            self = error == .failedToValidateHostname ? .wrongName : .noHandshake
        } else if case .handshakeFailed(.sslError(let stack))? = error as? NIOSSLError {
            // BoringSSL has a code for this; the package shows it as a text only.
            let isUnverified = stack.contains { $0.description.contains("CERTIFICATE_VERIFY_FAILED") }
            self = isUnverified ? .unverified : .noHandshake
        } else if String(reflecting: type(of: error)).contains("SSL") || Trouble.name(of: error).contains("SSL") {
            self = .noHandshake
        } else {
            return nil
        }
    }

    /// What is wrong with certificates that were not believed.
    ///
    /// - Parameter chain: as the server showed them, its own first.
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

    /// What is wrong and what to do.
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
