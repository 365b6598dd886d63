/// The notation of an instant in a field of an answer. It affects only the quotes in an explanation.
package enum InstantForm: Sendable, Hashable {
    /// `expires_date_ms`: milliseconds since 1970, as Apple sends today.
    case milliseconds
    /// `expires_date` holding milliseconds, as legacy answers do.
    case plain
    /// `expires_date` as text, `2015-02-10 09:00:00 Etc/GMT`, in rows so old that they have no other form.
    case text
    /// `expires_date_formatted`, the same text in legacy answers.
    case formatted
}

extension InstantForm {
    /// Returns the field's whole name, such as `expires_date_ms` for `expires_date`.
    func field(_ name: String) -> String {
        switch self {
        case .milliseconds: name + "_ms"
        case .plain, .text: name
        case .formatted: name + "_formatted"
        }
    }

    /// Returns the instant as the field writes it.
    func value(_ instant: Instant) -> String {
        switch self {
        case .milliseconds, .plain: String(instant.milliseconds)
        case .text, .formatted: instant.iso8601.prefix(19).split(separator: "T").joined(separator: " ") + " Etc/GMT"
        }
    }
}
