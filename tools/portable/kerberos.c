// Kerberos's functions that libgit2 names, all of which fail. Debian has them only in shared libraries, and libgit2
// would call them over the network alone, which playfs leaves to libcurl.

#define FAILS(function)    \
  unsigned function(void); \
  unsigned function(void) { return 13U << 16; /* GSS_S_FAILURE */ }

FAILS(gss_delete_sec_context)
FAILS(gss_display_status)
FAILS(gss_import_name)
FAILS(gss_indicate_mechs)
FAILS(gss_init_sec_context)
FAILS(gss_release_buffer)
FAILS(gss_release_name)
FAILS(gss_release_oid_set)

extern const void* const GSS_C_NT_HOSTBASED_SERVICE;
const void* const GSS_C_NT_HOSTBASED_SERVICE = 0;
