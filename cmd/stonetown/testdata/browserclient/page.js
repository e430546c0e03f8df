// An application without a server: code with PKCE, renewal by refresh token, sign-out.
const heading = document.querySelector('h1'), text = document.querySelector('p')
const manager = new oidc.UserManager({
  ...settings, // authority and client_id
  redirect_uri: location.origin + '/',
  post_logout_redirect_uri: location.origin + '/bye',
  scope: 'openid email offline_access',
  loadUserInfo: true,
  automaticSilentRenew: false,
})
let tokens

const show = (user) => {
  heading.textContent = user ? 'Hello ' + user.profile.email : 'Signed out'
  tokens = user && [user.access_token, user.refresh_token]
}

const attempt = async (work) => {
  try {
    await work()
  } catch (error) {
    text.textContent = String(error)
  }
}

document.querySelector('#in').onclick = () => attempt(() => manager.signinRedirect())
document.querySelector('#out').onclick = () => attempt(() => manager.signoutRedirect())
document.querySelector('#renew').onclick = () => attempt(async () => {
  const [access, refresh] = tokens
  const user = await manager.signinSilent()
  show(user)
  text.textContent = user.access_token !== access && user.refresh_token !== refresh ? 'Renewed' : 'The tokens are the same'
})

attempt(async () => {
  if (location.search.includes('code=')) {
    show(await manager.signinCallback())
    history.replaceState(null, '', '/')
  }
})
