/// What an error code of the Server API means for a check.
///
/// Apple: "App Store Server API", error codes.
enum ServerErrorMeaning: Sendable, Hashable {
    /// This environment does not know the transaction. The other one may.
    case unknownHere
    /// The customer's Apple Account is not known any more.
    case accountGone
    /// Apple has a temporary problem.
    case temporary
    /// Too many requests.
    case tooMany
    /// The app is not known, or its number is wrong: no transaction of it can be asked about.
    case appRefused
    /// Apple does not know the revision, or the token of a page, any more.
    case placeLost
    /// The id can never be asked about.
    case idRefused
    /// The request has a fault: ours.
    case ourFault

    /// Determines the meaning of a code; nil for a code that is none of a failed check.
    init?(_ code: Int) {
        switch code {
        case 4_040_005, 4_040_010: self = .unknownHere
        case 4_040_001: self = .accountGone
        case 4_040_002, 4_040_004, 4_040_006, 5_000_000..<6_000_000: self = .temporary
        case 4_290_000: self = .tooMany
        case 4_040_003, 4_000_002: self = .appRefused
        case 4_000_005, 4_000_014, 4_000_017: self = .placeLost
        case 4_000_006, 4_000_008, 4_000_048, 4_000_187: self = .idRefused
        case 4_000_000..<4_010_000, 4_030_000..<4_050_000: self = .ourFault
        default: return nil
        }
    }
}
